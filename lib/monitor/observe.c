/* See observe.h. */
#include "monitor/observe.h"

#include <stdlib.h>

#include "monitor/held.h"

rd_view_t *rd_observe_begin(bool hurried)
{
    rd_view_t *view = calloc(1, sizeof *view);

    if (!view)
        return NULL;
    view->hurried = hurried;
    if (!rd_held_view(view) || !rd_view_look(view, 0))
        rd_observe_end(&view);
    return view;
}

const rd_view_comm_t *rd_observe_seen(const rd_view_t *view, const rd_seat_t *seat)
{
    return view && seat && seat->record ? rd_view_comm_of(view->comms, view->ncomms, seat->board->id) : NULL;
}

const rd_view_comm_t *rd_observe_again(rd_view_t *view, const rd_seat_t *seat)
{
    if (!view || !seat || !seat->record || !rd_held_again(view) || !rd_view_look(view, 0))
        return NULL;
    return rd_observe_seen(view, seat);
}

void rd_observe_end(rd_view_t **view)
{
    if (*view)
        rd_view_free(*view);
    free(*view);
    *view = NULL;
}
