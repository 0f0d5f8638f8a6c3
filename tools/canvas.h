/* What pictures are painted on: lines, areas and text in points, from the upper left corner. canvas_cairo.c paints by
 * cairo, as hwloc's lstopo does; canvas_none.c is compiled where cairo is missing, and refuses. */
#ifndef RD_CANVAS_H
#define RD_CANVAS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct canvas canvas_t;

/* NULL if `file` could be painted here: its name ends in .svg or .png, and rondo was built with cairo. Otherwise the
 * sentence that refuses it. */
const char *canvas_refuses(const char *file);

canvas_t *canvas_open(const char *file, double width, double height, const char **why);
/* Writes the file. `told` is what the picture shows as text, which an SVG carries for readers that cannot see it, for
 * searches and for scripts. NULL, or why nothing was written. */
const char *canvas_close(canvas_t *canvas, const char *title, const char *told);
void canvas_drop(canvas_t *canvas); /* without a file */

void canvas_ink(canvas_t *canvas, uint32_t rgb, double alpha);
void canvas_pen(canvas_t *canvas, double width, int dash); /* dash: 0 solid, 1 dashed, 2 dotted, 3 both */
/* `xy` holds x and y of `n` points in turns. */
void canvas_line(canvas_t *canvas, const double *xy, int n);
void canvas_area(canvas_t *canvas, const double *xy, int n);
void canvas_disc(canvas_t *canvas, double x, double y, double radius);
/* `align`: 0 begins at x, 0.5 is centred there, 1 ends there. `turned`: from below to above. */
void canvas_text(canvas_t *canvas, double x, double y, double size, double align, bool turned, const char *text);
double canvas_text_width(canvas_t *canvas, double size, const char *text);
void canvas_bold(canvas_t *canvas, bool bold);

#endif
