/* Charts over message size: panels in a grid, each with axes of its own, one legend for all of them, a caption. The
 * size's axis is logarithmic by powers of two. What is drawn is told as text as well (canvas.h). */
#ifndef RD_CHART_H
#define RD_CHART_H

#include <stdbool.h>

typedef struct chart chart_t;

typedef enum {
    CHART_LINE,  /* marks joined by a line, with a band from low to high */
    CHART_PLAIN, /* a line without marks */
    CHART_DOTS,  /* marks alone */
    CHART_UNDER  /* a broad pale line below the others */
} chart_kind_t;

/* `across`: panels in a row of the grid. NULL: no memory. */
chart_t *chart_new(const char *title, const char *caption, int across);
/* Returns the panel's number. Panels fill the grid row by row. A panel without a title stays empty. */
int chart_panel(chart_t *chart, const char *title, const char *unit, bool logarithmic);
/* A value of the series `name` in a panel. Series of one name look alike everywhere and have one line of the legend;
 * those that differ in their kind alone share a colour. An x of 0 means that the panel has no sizes. */
void chart_point(chart_t *chart, int panel, const char *name, chart_kind_t kind, double x, double y, double low,
                 double high);
void chart_large(chart_t *chart); /* panels twice as wide and high: for one alone */
void chart_free(chart_t *chart);
/* Draws, writes and frees. NULL, or why there is no picture. */
const char *chart_write(chart_t *chart, const char *file);

#endif
