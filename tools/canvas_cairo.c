/* A canvas by cairo: SVG or, at twice the resolution, PNG. Cairo draws the letters of an SVG as shapes, which look the
 * same everywhere but cannot be read by a program; so the file gets a <title> and a <desc> with the picture as text. */
#include <cairo-svg.h>
#include <cairo.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "canvas.h"

#define PNG_SCALE 2.0 /* pixels a point */

struct canvas {
    cairo_t *cr;
    cairo_surface_t *surface;
    const char *file;
    bool svg, bold;
    char *text; /* the SVG, as cairo has written it */
    size_t length;
};

static bool ends_in(const char *file, const char *end)
{
    size_t n = strlen(file), m = strlen(end);

    return n > m && strcmp(file + n - m, end) == 0;
}

const char *canvas_refuses(const char *file)
{
    return ends_in(file, ".svg") || ends_in(file, ".png") ? NULL : "a picture's name must end in .svg or .png";
}

static cairo_status_t keep(void *arg, const unsigned char *data, unsigned length)
{
    canvas_t *c = arg;
    char *more = realloc(c->text, c->length + length);

    if (!more)
        return CAIRO_STATUS_NO_MEMORY;
    memcpy(more + c->length, data, length);
    c->text = more;
    c->length += length;
    return CAIRO_STATUS_SUCCESS;
}

canvas_t *canvas_open(const char *file, double width, double height, const char **why)
{
    canvas_t *c;

    *why = canvas_refuses(file);
    if (*why)
        return NULL;
    c = calloc(1, sizeof *c);
    *why = "no memory for a picture";
    if (!c)
        return NULL;
    c->file = file;
    c->svg = ends_in(file, ".svg");
    c->surface = c->svg ? cairo_svg_surface_create_for_stream(keep, c, width, height)
                        : cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)ceil(width * PNG_SCALE),
                                                     (int)ceil(height * PNG_SCALE));
    c->cr = cairo_create(c->surface);
    if (cairo_status(c->cr) != CAIRO_STATUS_SUCCESS) {
        *why = cairo_status_to_string(cairo_status(c->cr));
        cairo_destroy(c->cr);
        cairo_surface_destroy(c->surface);
        free(c);
        return NULL;
    }
    *why = NULL;
    if (!c->svg)
        cairo_scale(c->cr, PNG_SCALE, PNG_SCALE);
    cairo_set_source_rgb(c->cr, 1, 1, 1);
    cairo_paint(c->cr);
    cairo_set_line_join(c->cr, CAIRO_LINE_JOIN_ROUND);
    return c;
}

static void escaped(FILE *f, const char *text)
{
    for (; *text; text++)
        if (*text == '<')
            fputs("&lt;", f);
        else if (*text == '>')
            fputs("&gt;", f);
        else if (*text == '&')
            fputs("&amp;", f);
        else
            fputc(*text, f);
}

/* What cairo has written, and behind the opening tag what the picture shows. */
static const char *write_svg(const canvas_t *c, const char *title, const char *told)
{
    const char *tag = NULL, *body = NULL;
    FILE *f;
    bool bad;

    for (size_t i = 0; i + 4 < c->length && !tag; i++)
        if (memcmp(c->text + i, "<svg", 4) == 0)
            tag = c->text + i;
    if (tag)
        body = memchr(tag, '>', c->length - (size_t)(tag - c->text));
    if (!body)
        return "cairo wrote no SVG";
    body++;
    f = fopen(c->file, "w");
    if (!f)
        return strerror(errno);
    fwrite(c->text, 1, (size_t)(body - c->text), f);
    fputs("\n<title>", f);
    escaped(f, title);
    fputs("</title>\n<desc>\n", f);
    escaped(f, told);
    fputs("</desc>", f);
    fwrite(body, 1, c->length - (size_t)(body - c->text), f);
    bad = ferror(f) != 0;
    return fclose(f) != 0 || bad ? "it could not be written" : NULL;
}

const char *canvas_close(canvas_t *c, const char *title, const char *told)
{
    const char *why = NULL;
    cairo_status_t status;

    cairo_surface_flush(c->surface);
    status = c->svg ? CAIRO_STATUS_SUCCESS : cairo_surface_write_to_png(c->surface, c->file);
    cairo_destroy(c->cr);
    cairo_surface_finish(c->surface);
    if (status == CAIRO_STATUS_SUCCESS)
        status = cairo_surface_status(c->surface);
    if (status != CAIRO_STATUS_SUCCESS)
        why = cairo_status_to_string(status);
    else if (c->svg)
        why = write_svg(c, title, told);
    cairo_surface_destroy(c->surface);
    free(c->text);
    free(c);
    return why;
}

void canvas_drop(canvas_t *c)
{
    cairo_destroy(c->cr);
    cairo_surface_destroy(c->surface);
    free(c->text);
    free(c);
}

void canvas_ink(canvas_t *c, uint32_t rgb, double alpha)
{
    cairo_set_source_rgba(c->cr, (rgb >> 16) / 255.0, (rgb >> 8 & 255) / 255.0, (rgb & 255) / 255.0, alpha);
}

void canvas_pen(canvas_t *c, double width, int dash)
{
    static const double dashes[][4] = {{0}, {6, 3, 6, 3}, {1.5, 2.5, 1.5, 2.5}, {7, 2.5, 1.5, 2.5}};

    cairo_set_line_width(c->cr, width);
    cairo_set_dash(c->cr, dashes[dash & 3], dash & 3 ? 4 : 0, 0);
}

static void path(canvas_t *c, const double *xy, int n)
{
    for (int i = 0; i < n; i++)
        if (i == 0)
            cairo_move_to(c->cr, xy[0], xy[1]);
        else
            cairo_line_to(c->cr, xy[2 * i], xy[2 * i + 1]);
}

void canvas_line(canvas_t *c, const double *xy, int n)
{
    path(c, xy, n);
    cairo_stroke(c->cr);
}

void canvas_area(canvas_t *c, const double *xy, int n)
{
    path(c, xy, n);
    cairo_close_path(c->cr);
    cairo_fill(c->cr);
}

void canvas_disc(canvas_t *c, double x, double y, double radius)
{
    cairo_new_sub_path(c->cr);
    cairo_arc(c->cr, x, y, radius, 0, 2 * M_PI);
    cairo_fill(c->cr);
}

static void font(canvas_t *c, double size)
{
    cairo_select_font_face(c->cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           c->bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(c->cr, size);
}

double canvas_text_width(canvas_t *c, double size, const char *text)
{
    cairo_text_extents_t box;

    font(c, size);
    cairo_text_extents(c->cr, text, &box);
    return box.x_advance;
}

void canvas_text(canvas_t *c, double x, double y, double size, double align, bool turned, const char *text)
{
    double width = canvas_text_width(c, size, text);

    cairo_save(c->cr);
    cairo_translate(c->cr, x, y);
    if (turned)
        cairo_rotate(c->cr, -M_PI / 2);
    cairo_move_to(c->cr, -align * width, 0);
    cairo_show_text(c->cr, text);
    cairo_restore(c->cr);
}

void canvas_bold(canvas_t *c, bool bold)
{
    c->bold = bold;
}
