/* rondo-ras convert: dumps of one format, or of several processes of many hosts, into another one. */
#include <stdio.h>

#include "load.h"
#include "ras.h"

int ras_convert(const ras_options_t *options)
{
    const char *format = options->format ? options->format : "json";
    rd_view_t view;
    rd_dump_t dump;

    if (options->nargs != 2) {
        fprintf(stderr, "rondo-ras: convert needs a folder or file of dumps, and where to write: convert IN OUT\n");
        return RAS_USAGE;
    }
    if (!ras_is_format(format))
        return RAS_USAGE;
    if (!load_dumps(&view, options->args[0]))
        return RAS_NOTHING;
    int bad = RAS_NOTHING;
    if (rd_dump_read(&dump, &view, 0)) {
        bad = ras_write_dump(&dump, format, options->args[1]);
        rd_dump_free(&dump);
    }
    rd_view_free(&view);
    return bad;
}
