/* What is read for fuzzing is written in every format. */
#include "fuzz/dumps.h"
#include "monitor/dump_fr.h"

static bool write_streams(const rd_dump_t *dump, rd_out_t *out)
{
    rd_streams_t streams;
    bool good = rd_streams_find(&streams, dump);

    for (int i = 0; i < dump->view->nprocesses && good; i++) {
        rd_dump_json(out, dump, i);
        good = rd_dump_fr(out, dump, &streams, i);
    }
    good = good && rd_dump_chrome(out, dump);
    rd_streams_free(&streams, dump);
    return good;
}

static bool to_nowhere(void *arg, const void *bytes, size_t n)
{
    (void)arg;
    (void)bytes;
    (void)n;
    return true;
}

bool dumps_write(const rd_view_t *view)
{
    static rd_out_t out;
    rd_dump_t dump;

    if (!rd_dump_read(&dump, view, 0))
        return false;
    rd_out_begin_sink(&out, to_nowhere, NULL);
    bool good = write_streams(&dump, &out) && rd_out_end(&out) == 0;
    rd_dump_free(&dump);
    return good;
}
