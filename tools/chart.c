/* Charts: how panels are laid out, scaled and drawn. Colours are those of Okabe and Ito, which colour-blind people can
 * tell apart; marks and dashes differ as well, so that a chart survives a printer without colours. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "canvas.h"
#include "chart.h"

#define PANELS_MOST 64
#define NAMES_MOST 48
#define CELL_W 350.0
#define CELL_H 236.0
#define LEFT 56.0 /* of the frame inside a cell */
#define RIGHT 14.0
#define TOP 26.0
#define BOTTOM 40.0
#define MARGIN 12.0
#define INK 0x222222
#define TEXT 10.0

typedef struct {
    double x, y, low, high;
} point_t;

typedef struct {
    int name; /* of chart.names */
    chart_kind_t kind;
    point_t *points;
    int count, room;
} series_t;

typedef struct {
    char title[96], unit[48];
    bool logarithmic, sized;
    series_t series[NAMES_MOST];
    int count;
    double x0, x1, y0, y1;         /* the axes' ends, as values */
    double left, right, top, base; /* the frame, as points */
} panel_t;

struct chart {
    char *title, *caption;
    int across, npanels, nnames;
    double cell_w, cell_h;
    bool failed; /* no memory, or more than there is room for */
    char names[NAMES_MOST][64];
    chart_kind_t kinds[NAMES_MOST];
    int colours[NAMES_MOST];
    panel_t panel[PANELS_MOST];
    char *told; /* the picture as text */
    size_t ntold;
    FILE *tell;
};

static const uint32_t colours[] = {0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9, 0x000000};
#define NCOLOURS (int)(sizeof colours / sizeof colours[0])

chart_t *chart_new(const char *title, const char *caption, int across)
{
    chart_t *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->title = strdup(title);
    c->caption = strdup(caption);
    c->across = across < 1 ? 1 : across;
    c->cell_w = CELL_W;
    c->cell_h = CELL_H;
    c->failed = !c->title || !c->caption;
    return c;
}

int chart_panel(chart_t *c, const char *title, const char *unit, bool logarithmic)
{
    panel_t *p;

    if (c->npanels == PANELS_MOST) {
        c->failed = true;
        return PANELS_MOST - 1;
    }
    p = &c->panel[c->npanels];
    snprintf(p->title, sizeof p->title, "%s", title);
    snprintf(p->unit, sizeof p->unit, "%s", unit);
    p->logarithmic = logarithmic;
    return c->npanels++;
}

/* The colour belongs to a name up to its first space after a comma, so "ring" and "ring, measured" share one. */
static int name_number(chart_t *c, const char *name, chart_kind_t kind)
{
    int colour = 0;

    for (int i = 0; i < c->nnames; i++)
        if (strncmp(c->names[i], name, sizeof c->names[0] - 1) == 0) /* longer names are cut */
            return i;
    if (c->nnames == NAMES_MOST)
        return -1;
    for (int i = 0; i < c->nnames; i++) {
        size_t n = strcspn(c->names[i], ",");

        if (n == strcspn(name, ",") && strncmp(c->names[i], name, n) == 0) {
            colour = c->colours[i];
            break;
        }
        colour = c->colours[i] + 1 > colour ? c->colours[i] + 1 : colour;
    }
    snprintf(c->names[c->nnames], sizeof c->names[0], "%s", name);
    c->kinds[c->nnames] = kind;
    c->colours[c->nnames] = colour;
    return c->nnames++;
}

static series_t *series_of(chart_t *c, panel_t *p, const char *name, chart_kind_t kind)
{
    int number = name_number(c, name, kind);

    for (int i = 0; i < p->count; i++)
        if (p->series[i].name == number)
            return &p->series[i];
    if (number < 0 || p->count == NAMES_MOST)
        return NULL;
    p->series[p->count] = (series_t){.name = number, .kind = kind};
    return &p->series[p->count++];
}

void chart_point(chart_t *c, int panel, const char *name, chart_kind_t kind, double x, double y, double low,
                 double high)
{
    panel_t *p = &c->panel[panel];
    series_t *s = series_of(c, p, name, kind);

    if (s && s->count == s->room) {
        point_t *more = realloc(s->points, (size_t)(2 * s->room + 16) * sizeof *more);

        if (more)
            s->points = more;
        s->room = more ? 2 * s->room + 16 : s->room;
    }
    if (!s || s->count == s->room) {
        c->failed = true;
        return;
    }
    if (x > 0)
        p->sized = true;
    if (y > 0)
        s->points[s->count++] = (point_t){x, y, low, high};
}

/* ---- scales ---- */

/* The next of 1, 2 and 5 times a power of ten, up or down. */
static double rounded(double value, bool up)
{
    static const double steps[] = {1, 2, 5, 10};
    double power = pow(10, floor(log10(value))), found = power;

    for (int i = 0; i < 4; i++) {
        if (up && steps[i] * power >= value * (1 - 1e-9))
            return steps[i] * power;
        if (steps[i] * power <= value * (1 + 1e-9))
            found = steps[i] * power;
    }
    return found;
}

static void scale(panel_t *p)
{
    double least = INFINITY, most = 0;

    p->x0 = INFINITY;
    p->x1 = 0;
    for (int s = 0; s < p->count; s++)
        for (int i = 0; i < p->series[s].count; i++) {
            const point_t *at = &p->series[s].points[i];

            p->x0 = fmin(p->x0, at->x);
            p->x1 = fmax(p->x1, at->x);
            least = fmin(least, fmin(at->y, at->low > 0 ? at->low : at->y));
            most = fmax(most, fmax(at->y, at->high));
        }
    if (most <= 0)
        least = most = 1;
    if (!p->sized) {
        p->x0 = 0;
        p->x1 = p->count + 1;
    } else if (p->x0 == p->x1) {
        p->x0 /= 2;
        p->x1 *= 2;
    }
    p->y0 = p->logarithmic ? rounded(least * 0.95, false) : 0;
    p->y1 = p->logarithmic ? rounded(most * 1.05, true) : most * 1.06;
}

static double at_x(const panel_t *p, double x)
{
    double part = p->sized ? log2(x / p->x0) / log2(p->x1 / p->x0) : (x - p->x0) / (p->x1 - p->x0);

    return p->left + part * (p->right - p->left);
}

static double at_y(const panel_t *p, double y)
{
    double part = p->logarithmic ? log(fmax(y, p->y0) / p->y0) / log(p->y1 / p->y0) : (y - p->y0) / (p->y1 - p->y0);

    return p->base + part * (p->top - p->base);
}

static void size_text(char text[24], double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;

    for (; bytes >= 1024 && unit < 4; unit++)
        bytes /= 1024;
    snprintf(text, 24, "%g %s", bytes, units[unit]);
}

/* ---- axes ---- */

static void rule(canvas_t *v, double x0, double y0, double x1, double y1)
{
    canvas_line(v, (const double[]){x0, y0, x1, y1}, 2);
}

/* A line of the grid at `y`, with its number where that is said. */
static void y_tick(canvas_t *v, const panel_t *p, double y, bool major, bool number)
{
    static const char *const powers[] = {"⁴", "⁵", "⁶", "⁷", "⁸", "⁹", "¹⁰", "¹¹", "¹²"};
    char text[24];

    canvas_ink(v, 0x888888, major ? 0.35 : 0.13);
    canvas_pen(v, 0.6, 0);
    rule(v, p->left, at_y(p, y), p->right, at_y(p, y));
    if (!number)
        return;
    if (p->logarithmic && y >= 10000)
        snprintf(text, sizeof text, "10%s", powers[(int)(log10(y) + 0.5) - 4]);
    else
        snprintf(text, sizeof text, "%g", y);
    canvas_ink(v, INK, 1);
    canvas_text(v, p->left - 5, at_y(p, y) + 3.5, TEXT, 1, false, text);
}

static void y_axis(canvas_t *v, const panel_t *p)
{
    if (p->logarithmic) {
        double decades = log10(p->y1 / p->y0);

        for (int k = (int)floor(log10(p->y0)); k <= (int)ceil(log10(p->y1)); k++)
            for (int m = 1; m < 10; m++) {
                double y = m * pow(10, k);

                if (y < p->y0 * (1 - 1e-9) || y > p->y1 * (1 + 1e-9))
                    continue;
                y_tick(v, p, y, m == 1, m == 1 || (decades < 2.2 && y < 1e4 && (m == 2 || m == 5)));
            }
    } else {
        double step = rounded(p->y1 / 5.5, true);

        for (int i = 0; i * step <= p->y1; i++)
            y_tick(v, p, i * step, true, true);
    }
    canvas_ink(v, INK, 1);
    canvas_text(v, p->left - LEFT + 14, (p->top + p->base) / 2, TEXT, 0.5, true, p->unit);
}

static void x_axis(const chart_t *c, canvas_t *v, const panel_t *p)
{
    int first = (int)ceil(log2(p->x0) - 1e-9), last = (int)floor(log2(p->x1) + 1e-9);
    int step = (last - first + 5) / 6;
    char text[24];

    if (!p->sized) {
        for (int s = 0; s < p->count; s++) {
            const char *name = c->names[p->series[s].name];

            if (canvas_text_width(v, TEXT, name) < at_x(p, 2) - at_x(p, 1) - 4) /* else the legend alone says it */
                canvas_text(v, at_x(p, s + 1), p->base + 13, TEXT, 0.5, false, name);
        }
        return;
    }
    for (int k = first; k <= last; k++) {
        double x = at_x(p, pow(2, k));
        bool major = step < 1 || (k - first) % step == 0;

        canvas_ink(v, major ? 0x888888 : INK, major ? 0.35 : 0.8);
        canvas_pen(v, 0.6, 0);
        rule(v, x, major ? p->top : p->base - 2.5, x, p->base);
        if (!major)
            continue;
        canvas_ink(v, INK, 1);
        size_text(text, pow(2, k));
        canvas_text(v, x, p->base + 13, TEXT, 0.5, false, text);
    }
    canvas_ink(v, INK, 1);
    canvas_text(v, (p->left + p->right) / 2, p->base + 28, TEXT, 0.5, false, "message size");
}

static void frame(canvas_t *v, const panel_t *p)
{
    canvas_ink(v, INK, 1);
    canvas_pen(v, 0.9, 0);
    canvas_line(v, (const double[]){p->left, p->top, p->left, p->base, p->right, p->base}, 3);
    canvas_bold(v, true);
    canvas_text(v, p->left, p->top - 8, 11, 0, false, p->title);
    canvas_bold(v, false);
}

/* ---- series ---- */

static uint32_t colour_of(const chart_t *c, int name)
{
    return c->kinds[name] == CHART_UNDER ? 0x999999 : colours[c->colours[name] % NCOLOURS];
}

/* A mark: disc, square, triangle or diamond by the series' colour, so that colours are not all that tells them apart.
 */
static void mark(canvas_t *v, int look, double x, double y, double r)
{
    switch (look % 4) {
    case 0:
        canvas_disc(v, x, y, r);
        return;
    case 1:
        canvas_area(v, (const double[]){x - r, y - r, x + r, y - r, x + r, y + r, x - r, y + r}, 4);
        return;
    case 2:
        canvas_area(v, (const double[]){x, y - 1.3 * r, x + 1.2 * r, y + r, x - 1.2 * r, y + r}, 3);
        return;
    default:
        canvas_area(v, (const double[]){x, y - 1.4 * r, x + 1.4 * r, y, x, y + 1.4 * r, x - 1.4 * r, y}, 4);
    }
}

static void stroke_pen(const chart_t *c, canvas_t *v, int name)
{
    chart_kind_t kind = c->kinds[name];

    canvas_ink(v, colour_of(c, name), kind == CHART_UNDER ? 0.35 : 1);
    canvas_pen(v, kind == CHART_UNDER ? 8 : 1.6, kind == CHART_UNDER ? 0 : c->colours[name] / NCOLOURS);
}

static void band(const chart_t *c, canvas_t *v, const panel_t *p, const series_t *s)
{
    double *xy = malloc((size_t)s->count * 4 * sizeof *xy);

    if (!xy)
        return;
    for (int i = 0; i < s->count; i++) {
        double x = at_x(p, s->points[i].x);
        double *up = xy + 2 * i, *down = xy + 2 * (2 * s->count - 1 - i);

        up[0] = down[0] = x;
        up[1] = at_y(p, s->points[i].low);
        down[1] = at_y(p, s->points[i].high);
    }
    canvas_ink(v, colour_of(c, s->name), 0.22);
    canvas_area(v, xy, 2 * s->count);
    free(xy);
}

static void draw_sized(const chart_t *c, canvas_t *v, const panel_t *p, const series_t *s)
{
    double *xy = malloc((size_t)(s->count + 1) * 2 * sizeof *xy);

    if (!xy)
        return;
    for (int i = 0; i < s->count; i++) {
        xy[2 * i] = at_x(p, s->points[i].x);
        xy[2 * i + 1] = at_y(p, s->points[i].y);
    }
    stroke_pen(c, v, s->name);
    if (s->kind != CHART_DOTS && s->count > 1)
        canvas_line(v, xy, s->count);
    if (s->kind == CHART_LINE || s->kind == CHART_DOTS)
        for (int i = 0; i < s->count; i++)
            mark(v, c->colours[s->name], xy[2 * i], xy[2 * i + 1], s->kind == CHART_DOTS ? 3 : 2.1);
    free(xy);
}

/* Without sizes: a mark for each series, its spread, and its value beside it. */
static void draw_alone(const chart_t *c, canvas_t *v, const panel_t *p, int number)
{
    const series_t *s = &p->series[number];
    double x = at_x(p, number + 1);
    char text[24];

    for (int i = 0; i < s->count; i++) {
        stroke_pen(c, v, s->name);
        rule(v, x, at_y(p, s->points[i].low), x, at_y(p, s->points[i].high));
        mark(v, c->colours[s->name], x, at_y(p, s->points[i].y), 3.5);
        snprintf(text, sizeof text, "%.3g", s->points[i].y);
        canvas_ink(v, INK, 1);
        canvas_text(v, x + 8, at_y(p, s->points[i].y) + 3.5, TEXT, 0, false, text);
    }
}

static void draw_panel(const chart_t *c, canvas_t *v, panel_t *p)
{
    scale(p);
    y_axis(v, p);
    x_axis(c, v, p);
    for (int s = 0; s < p->count && p->sized; s++)
        if (p->series[s].kind == CHART_LINE && p->series[s].count > 1)
            band(c, v, p, &p->series[s]);
    for (int pale = 1; pale >= 0; pale--)
        for (int s = 0; s < p->count; s++)
            if ((p->series[s].kind == CHART_UNDER) == pale && p->sized)
                draw_sized(c, v, p, &p->series[s]);
            else if (!p->sized && pale)
                draw_alone(c, v, p, s);
    frame(v, p);
}

/* ---- around the panels ---- */

/* The legend, in lines of at most `width`, drawn or only measured; returns its height. */
static double legend(const chart_t *c, canvas_t *v, double top, double width, bool paint)
{
    double x = 0, y = top;

    for (int i = 0; i < c->nnames; i++) {
        double w = 26 + canvas_text_width(v, TEXT, c->names[i]) + 18;

        if (x > 0 && x + w > width) {
            x = 0;
            y += 16;
        }
        if (paint) {
            double left = MARGIN + x;

            stroke_pen(c, v, i);
            if (c->kinds[i] != CHART_DOTS)
                rule(v, left, y - 3.5, left + 20, y - 3.5);
            if (c->kinds[i] == CHART_LINE || c->kinds[i] == CHART_DOTS)
                mark(v, c->colours[i], left + 10, y - 3.5, 2.6);
            canvas_ink(v, INK, 1);
            canvas_text(v, left + 26, y, TEXT, 0, false, c->names[i]);
        }
        x += w;
    }
    return y - top + 16;
}

/* The caption, broken between words; returns its height. */
static double caption(const chart_t *c, canvas_t *v, double top, double width, bool paint)
{
    char line[512];
    double y = top;

    for (const char *at = c->caption; *at; y += 12) {
        size_t fits = 0; /* bytes of `at` up to the end of the last word that fits */

        for (size_t end = 0; at[end] != '\n' || fits == 0; fits = end) {
            end += strspn(at + end, " ");
            end += strcspn(at + end, " \n");
            snprintf(line, sizeof line, "%.*s", (int)end, at);
            if ((fits && canvas_text_width(v, 9, line) > width) || end == fits)
                break;
        }
        snprintf(line, sizeof line, "%.*s", (int)fits, at);
        if (paint)
            canvas_text(v, MARGIN, y, 9, 0, false, line);
        at += fits;
        at += strspn(at, " \n");
    }
    return y - top + 4;
}

static void tell_panel(chart_t *c, const panel_t *p)
{
    fprintf(c->tell, "panel \"%s\", %s, y %s %.6g to %.6g at %.2f to %.2f", p->title, p->unit,
            p->logarithmic ? "logarithmic" : "linear", p->y0, p->y1, p->base, p->top);
    if (p->sized)
        fprintf(c->tell, ", x logarithmic %.0f to %.0f bytes at %.2f to %.2f", p->x0, p->x1, p->left, p->right);
    fprintf(c->tell, "\n");
    for (int s = 0; s < p->count; s++) {
        const series_t *one = &p->series[s];

        fprintf(c->tell, "  series \"%s\" #%06x\n", c->names[one->name], colour_of(c, one->name));
        for (int i = 0; i < one->count; i++)
            fprintf(c->tell, "    %.0f %.6g %.6g %.6g\n", one->points[i].x, one->points[i].y, one->points[i].low,
                    one->points[i].high);
    }
}

static void paint(chart_t *c, canvas_t *v, double width, double top, double below)
{
    canvas_ink(v, INK, 1);
    canvas_bold(v, true);
    canvas_text(v, MARGIN, MARGIN + 12, 14, 0, false, c->title);
    canvas_bold(v, false);
    legend(c, v, MARGIN + 34, width - 2 * MARGIN, true);
    for (int i = 0; i < c->npanels; i++) {
        panel_t *p = &c->panel[i];

        if (!p->title[0])
            continue;
        p->left = MARGIN + i % c->across * c->cell_w + LEFT;
        p->right = p->left + c->cell_w - LEFT - RIGHT;
        p->top = top + i / c->across * c->cell_h + TOP;
        p->base = p->top + c->cell_h - TOP - BOTTOM;
        draw_panel(c, v, p);
        tell_panel(c, p);
    }
    canvas_ink(v, 0x555555, 1);
    caption(c, v, below + 12, width - 2 * MARGIN, true);
}

/* How high it is follows from how wide letters are, which a small canvas that is thrown away tells. */
static const char *draw(chart_t *c, const char *file)
{
    double width = 2 * MARGIN + c->cell_w * (c->npanels < c->across ? c->npanels : c->across);
    double top, below;
    const char *why;
    int rows;

    canvas_t *v = canvas_open(file, 10, 10, &why);

    if (!v)
        return why;
    top = MARGIN + 34 + legend(c, v, 0, width - 2 * MARGIN, false);
    while (c->npanels > 1 && !c->panel[c->npanels - 1].title[0])
        c->npanels--;
    rows = (c->npanels + c->across - 1) / c->across;
    below = top + rows * c->cell_h;
    double height = below + 12 + caption(c, v, 0, width - 2 * MARGIN, false);
    canvas_drop(v);
    v = canvas_open(file, width, height, &why);
    if (!v)
        return why;
    paint(c, v, width, top - 14, below - 14);
    fclose(c->tell);
    c->tell = NULL;
    return canvas_close(v, c->title, c->told);
}

void chart_large(chart_t *c)
{
    c->cell_w = 2 * CELL_W;
    c->cell_h = 2 * CELL_H;
}

void chart_free(chart_t *c)
{
    if (!c)
        return;
    for (int i = 0; i < c->npanels; i++)
        for (int s = 0; s < c->panel[i].count; s++)
            free(c->panel[i].series[s].points);
    free(c->told);
    free(c->title);
    free(c->caption);
    free(c);
}

const char *chart_write(chart_t *c, const char *file)
{
    const char *why = "no memory for the picture, or more panels than one can hold";

    c->tell = open_memstream(&c->told, &c->ntold);
    if (c->tell) {
        fprintf(c->tell, "%s\n", c->caption ? c->caption : "");
        if (!c->failed)
            why = draw(c, file);
    }
    if (c->tell)
        fclose(c->tell);
    chart_free(c);
    return why;
}
