/* rondo-ras who: the verdict on each communicator. */
#include <stdio.h>
#include <time.h>

#include "ras.h"

void ras_print_json(const char *text)
{
    char one[RD_JSON_CHAR];

    putchar('"');
    for (; *text; text++)
        fwrite(one, 1, (size_t)rd_out_json_char(*text, one), stdout);
    putchar('"');
}

static int finish(const rd_view_t *view, bool json)
{
    int worst = RD_VERDICT_NONE;

    if (json)
        printf("[");
    for (int i = 0, said = 0; i < view->ncomms; i++) {
        const rd_view_comm_t *c = &view->comms[i];
        rd_monitor_verdict_t v;
        rd_verdict_judge(view, c, &v);
        worst = rd_verdict_worse(v.status, worst);
        if (v.status == RD_VERDICT_NONE)
            continue;
        if (json) {
            printf("%s\n  {\"communicator\": ", said++ ? "," : "");
            ras_print_json(c->ranks[0].comm.name);
            printf(", \"id\": \"%016llx\", \"status\": %d, \"verdict\": ", (unsigned long long)c->id, v.status);
            ras_print_json(v.text);
            printf("}");
            continue;
        }
        printf("'%s': %s\n", c->ranks[0].comm.name, v.text);
        if (v.also[0])
            printf("    also: %s\n", v.also);
    }
    if (json)
        printf("]\n");
    else if (worst == RD_VERDICT_NONE)
        printf("nobody is waited for: %d communicator%s on this host\n", view->ncomms, view->ncomms == 1 ? "" : "s");
    return worst;
}

void ras_pause(double seconds)
{
    const struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    nanosleep(&pause, NULL);
}

bool ras_look_again(rd_view_t *view, const ras_options_t *options)
{
    if (options->hosts)
        return true; /* there they have looked twice */
    ras_pause(RD_VERDICT_MS / 1000.0);
    return rd_view_look(view, options->job);
}

int ras_who(rd_view_t *view, const ras_options_t *options)
{
    return ras_look_again(view, options) ? finish(view, options->json) : RAS_NOTHING;
}
