/* Fuzz target: dumps, of rondo (JSON) and of flight recorders (pickles). Each is refused, or becomes a record, which is
 * judged and written in every format. */
#include "fuzz/dumps.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/load.h"
#include "monitor/verdict.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Adds what the dump says, if it is one. */
static bool add(rd_view_t *view, const unsigned char *bytes, size_t n, int number, int *taken)
{
    load_t l;

    if (load_bytes(&l, bytes, n, number))
        return true;
    memcpy(l.comms, l.later, l.head->ncomms * sizeof *l.comms);
    free(l.later);
    ++*taken;
    return !rd_view_add_past(view, l.base, l.bytes, &l.then);
}

bool dumps_read(const unsigned char *bytes, size_t n, int *taken)
{
    rd_view_t view = {0};
    rd_monitor_verdict_t v;
    bool good = add(&view, bytes, n, 0, taken) && (view.nprocesses == 0 || add(&view, bytes, n, 1, taken));

    if (good && view.nprocesses) {
        good = rd_view_look(&view, 0) && rd_view_look(&view, 0);
        for (int i = 0; i < view.ncomms && good; i++)
            rd_verdict_judge(&view, &view.comms[i], &v);
        good = good && dumps_write(&view);
    }
    rd_view_free(&view);
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    int taken = 0;

    if (!dumps_read(data, bytes, &taken))
        abort();
    return 0;
}
