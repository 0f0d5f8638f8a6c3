/* Compiled where cairo is missing: no file can be painted, so canvas_open is never asked. */
#include <stddef.h>

#include "canvas.h"

const char *canvas_refuses(const char *file)
{
    (void)file;
    return "this rondo is built without cairo, which draws pictures: install libcairo2-dev and configure again";
}

canvas_t *canvas_open(const char *file, double width, double height, const char **why)
{
    (void)width;
    (void)height;
    *why = canvas_refuses(file);
    return NULL;
}

const char *canvas_close(canvas_t *canvas, const char *title, const char *told)
{
    (void)canvas;
    (void)title;
    (void)told;
    return NULL;
}

void canvas_drop(canvas_t *canvas)
{
    (void)canvas;
}

void canvas_ink(canvas_t *canvas, uint32_t rgb, double alpha)
{
    (void)canvas;
    (void)rgb;
    (void)alpha;
}

void canvas_pen(canvas_t *canvas, double width, int dash)
{
    (void)canvas;
    (void)width;
    (void)dash;
}

void canvas_line(canvas_t *canvas, const double *xy, int n)
{
    (void)canvas;
    (void)xy;
    (void)n;
}

void canvas_area(canvas_t *canvas, const double *xy, int n)
{
    canvas_line(canvas, xy, n);
}

void canvas_disc(canvas_t *canvas, double x, double y, double radius)
{
    (void)canvas;
    (void)x;
    (void)y;
    (void)radius;
}

void canvas_text(canvas_t *canvas, double x, double y, double size, double align, bool turned, const char *text)
{
    (void)canvas;
    (void)x;
    (void)y;
    (void)size;
    (void)align;
    (void)turned;
    (void)text;
}

double canvas_text_width(canvas_t *canvas, double size, const char *text)
{
    (void)canvas;
    (void)size;
    (void)text;
    return 0;
}

void canvas_bold(canvas_t *canvas, bool bold)
{
    (void)canvas;
    (void)bold;
}
