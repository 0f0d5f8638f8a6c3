/* rondo-info topo --draw: processors, NUMA nodes, caches and cores as boxes, each GPU and network device with the NUMA
 * node that it is near, and below how each GPU reaches the others. Cores are spread evenly over NUMA nodes and caches,
 * which is all that lib/topo knows of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/types.h"
#include "canvas.h"
#include "info.h"
#include "info_plot.h"
#include "topo/topo.h"

#define WIDTH 820.0
#define MARGIN 14.0
#define CORE_W 24.0
#define CORE_H 17.0
#define DEVICE_H 30.0
#define CELL 46.0 /* of the table of paths */
#define INK 0x222222

typedef struct {
    const rd_topo_t *host;
    const rd_gpu_topo_t *gpus;
    int nnuma, across;
    double numa_w;
    canvas_t *v; /* NULL: only measured */
    FILE *tell;
} drawing_t;

static int ceil_div(int a, int b)
{
    return b > 0 ? (a + b - 1) / b : 0;
}

static void box(canvas_t *v, double x, double y, double w, double h, uint32_t fill)
{
    const double xy[] = {x, y, x + w, y, x + w, y + h, x, y + h, x, y};

    canvas_ink(v, fill, 1);
    canvas_area(v, xy, 4);
    canvas_ink(v, 0x555555, 1);
    canvas_pen(v, 0.7, 0);
    canvas_line(v, xy, 5);
    canvas_ink(v, INK, 1);
}

/* The first core of group `i` of `n`. */
static int first_of(int cores, int i, int n)
{
    return (int)((long)cores * i / n);
}

/* A last-level cache with its cores; returns its height. */
static double draw_cache(const drawing_t *d, double x, double y, int first, int end)
{
    int a_row = (int)((d->numa_w - 28) / CORE_W), rows = ceil_div(end - first, a_row);
    double h = rows * CORE_H + 24;
    char text[64], size[24];

    if (!d->v)
        return h;
    box(d->v, x, y, d->numa_w - 16, h, 0xdbe9f6);
    snprintf(text, sizeof text, d->host->l3 ? "L3 %s, cores %d to %d" : "cores %.0s%d to %d",
             rd_bytes_print(d->host->l3, size), first, end - 1);
    canvas_text(d->v, x + 6, y + 13, 9, 0, false, text);
    fprintf(d->tell, "    %s\n", text);
    for (int c = first; c < end; c++) {
        double cx = x + 6 + (c - first) % a_row * CORE_W, cy = y + 19 + (c - first) / a_row * CORE_H;

        box(d->v, cx, cy, CORE_W - 3, CORE_H - 3, 0xffffff);
        snprintf(text, sizeof text, "%d", c);
        canvas_text(d->v, cx + (CORE_W - 3) / 2, cy + 11, 8, 0.5, false, text);
    }
    return h;
}

static double draw_device(const drawing_t *d, double x, double y, const char *name, const char *more, uint32_t fill)
{
    if (d->v) {
        box(d->v, x, y, d->numa_w - 16, DEVICE_H, fill);
        canvas_bold(d->v, true);
        canvas_text(d->v, x + 6, y + 12, 9, 0, false, name);
        canvas_bold(d->v, false);
        canvas_text(d->v, x + 6, y + 24, 8, 0, false, more);
        fprintf(d->tell, "    %s, %s\n", name, more);
    }
    return DEVICE_H + 5;
}

/* Devices near NUMA node `numa`; those that are near no known one are with the first. */
static bool is_near(int of, int numa)
{
    return of == numa || (of < 0 && numa == 0);
}

static double draw_devices(const drawing_t *d, double x, double y, int numa)
{
    const rd_gpu_topo_t *g = d->gpus;
    double top = y;
    char name[112], more[96];

    for (int i = 0; i < g->count; i++)
        if (is_near(g->gpu[i].numa, numa)) {
            snprintf(name, sizeof name, "GPU %d  %s", i, g->gpu[i].name);
            snprintf(more, sizeof more, "%s, %d GB, %d multiprocessors", g->gpu[i].bus, g->gpu[i].memory_mb / 1024,
                     g->gpu[i].sms);
            y += draw_device(d, x, y, name, more, 0xd5ecd4);
        }
    for (int i = 0; i < g->nnics; i++)
        if (is_near(g->nic[i].numa, numa)) {
            snprintf(name, sizeof name, "network  %s", g->nic[i].name);
            y += draw_device(d, x, y, name, g->nic[i].bus, 0xfbe3c8);
        }
    return y - top;
}

/* Draws a NUMA node, `h` high, or measures how high it must be. */
static double draw_numa(const drawing_t *d, double x, double top, int numa, double h)
{
    int first = first_of(d->host->cores, numa, d->nnuma), end = first_of(d->host->cores, numa + 1, d->nnuma);
    int smt = d->host->cores ? ceil_div(d->host->threads, d->host->cores) : 1;
    int shared = d->host->l3_threads > 0 ? d->host->l3_threads / (smt > 0 ? smt : 1) : end - first;
    double y = top + 22;
    char text[96];

    if (shared < 1)
        shared = 1;
    if (d->v) {
        box(d->v, x, top, d->numa_w, h, 0xf1f1f1);
        snprintf(text, sizeof text, "package %d, NUMA node %d",
                 numa * (d->host->packages ? d->host->packages : 1) / d->nnuma, numa);
        if (d->host->cores == 0)
            snprintf(text, sizeof text, "NUMA node %d", numa);
        canvas_bold(d->v, true);
        canvas_text(d->v, x + 8, top + 15, 10, 0, false, text);
        canvas_bold(d->v, false);
        fprintf(d->tell, "  %s\n", text);
    }
    for (int c = first; c < end; c += shared)
        y += draw_cache(d, x + 8, y, c, c + shared < end ? c + shared : end) + 6;
    y += draw_devices(d, x + 8, y, numa);
    return y - top + 6;
}

/* All NUMA nodes, row by row; returns their height. */
static double draw_numas(const drawing_t *d, double top)
{
    drawing_t measure = *d;
    double y = top;

    measure.v = NULL;
    for (int row = 0; row * d->across < d->nnuma; row++) {
        double h = 0, one;

        for (int i = row * d->across; i < d->nnuma && i < (row + 1) * d->across; i++)
            h = (one = draw_numa(&measure, 0, 0, i, 0)) > h ? one : h;
        for (int i = row * d->across; d->v && i < d->nnuma && i < (row + 1) * d->across; i++)
            draw_numa(d, MARGIN + i % d->across * (d->numa_w + 10), y, i, h);
        y += h + 10;
    }
    return y - top;
}

/* Pale for near, dark for far; GPUs of one node that have NVLinks are blue. */
static uint32_t path_colour(rd_near_t near)
{
    static const uint32_t colours[RD_NUM_NEAR] = {
        [RD_NEAR_SELF] = 0xffffff, [RD_NEAR_NVLINK] = 0x9ecae1, [RD_NEAR_PIX] = 0xfff3d6, [RD_NEAR_PXB] = 0xfde3b0,
        [RD_NEAR_PHB] = 0xfdc980,  [RD_NEAR_NODE] = 0xf5a65b,   [RD_NEAR_SYS] = 0xe5824f, [RD_NEAR_UNKNOWN] = 0xdddddd};

    return colours[near];
}

static void path_text(char text[16], const rd_gpu_topo_t *g, int a, int b)
{
    static const char *const names[RD_NUM_NEAR] = {"", "NV", "PIX", "PXB", "PHB", "NODE", "SYS", "?"};

    if (g->gpu[a].to[b].near == RD_NEAR_NVLINK)
        snprintf(text, 16, "NV%d", g->gpu[a].to[b].links);
    else
        snprintf(text, 16, "%s", names[a == b ? RD_NEAR_SELF : g->gpu[a].to[b].near]);
}

/* The table of paths between GPUs, in the words of nvidia-smi topo -m. */
static double draw_paths(const drawing_t *d, double top)
{
    const rd_gpu_topo_t *g = d->gpus;
    double x0 = MARGIN + CELL + 10, row = 20;
    char text[96];

    if (g->count < 2)
        return 0;
    for (int a = 0; d->v && a < g->count; a++) {
        snprintf(text, sizeof text, "GPU %d", a);
        canvas_text(d->v, x0 + (a + 0.5) * CELL, top + 30, 9, 0.5, false, text);
        canvas_text(d->v, x0 - 6, top + 37 + (a + 0.65) * row, 9, 1, false, text);
        fprintf(d->tell, "  %s:", text);
        for (int b = 0; b < g->count; b++) {
            box(d->v, x0 + b * CELL, top + 37 + a * row, CELL, row,
                path_colour(a == b ? RD_NEAR_SELF : g->gpu[a].to[b].near));
            path_text(text, g, a, b);
            canvas_text(d->v, x0 + (b + 0.5) * CELL, top + 37 + (a + 0.65) * row, 9, 0.5, false, text);
            fprintf(d->tell, " %s", *text ? text : "X");
        }
        fprintf(d->tell, "\n");
    }
    if (d->v) {
        rd_gpu_path_t far = rd_gpu_farthest(g, g->count);
        char path[64];

        canvas_bold(d->v, true);
        canvas_text(d->v, MARGIN, top + 12, 11, 0, false, "Paths between GPUs");
        canvas_bold(d->v, false);
        snprintf(text, sizeof text, "the farthest pair: %s", rd_gpu_path_print(far, path));
        canvas_text(d->v, MARGIN + 140, top + 12, 9, 0, false, text);
        canvas_text(
            d->v, MARGIN, top + 37 + g->count * row + 16, 8, 0, false,
            "NV: that many NVLinks   PIX, PXB: one PCIe switch, several   PHB, NODE: one host bridge, several of "
            "a NUMA node   SYS: from NUMA node to NUMA node");
    }
    return 37 + g->count * row + 26;
}

static const char *picture(drawing_t *d, const char *file, const char *title, char **told, size_t *ntold)
{
    double top = MARGIN + 34, height = top + draw_numas(d, 0) + draw_paths(d, 0) + 8 + MARGIN;
    char text[256], memory[24];
    const char *why;
    canvas_t *v = canvas_open(file, WIDTH, height, &why);

    if (!v)
        return why;
    d->v = v;
    d->tell = open_memstream(told, ntold);
    if (!d->tell) {
        canvas_drop(v);
        return "no memory";
    }
    canvas_ink(v, INK, 1);
    canvas_bold(v, true);
    canvas_text(v, MARGIN, MARGIN + 11, 13, 0, false, title);
    canvas_bold(v, false);
    if (d->host->cores)
        snprintf(text, sizeof text, "packages %d, NUMA nodes %d, cores %d, threads %d, memory %s, GPUs %d (%s)",
                 d->host->packages, d->host->numa, d->host->cores, d->host->threads,
                 rd_bytes_print(d->host->memory >> 30 << 30, memory), d->gpus->count, d->host->source);
    else
        snprintf(text, sizeof text, "GPUs %d, network devices %d; processors were not recorded", d->gpus->count,
                 d->gpus->nnics);
    canvas_text(v, MARGIN, MARGIN + 26, 9, 0, false, text);
    fprintf(d->tell, "%s\n", text);
    top += draw_numas(d, top);
    draw_paths(d, top);
    fclose(d->tell);
    return canvas_close(v, title, *told);
}

int info_topo_draw(const rd_topo_t *host, const rd_gpu_topo_t *gpus, const char *file)
{
    drawing_t d = {.host = host, .gpus = gpus, .nnuma = host->numa > 0 ? host->numa : 1};
    const char *why;
    char title[192], *told = NULL;
    size_t ntold;

    for (int i = 0; i < gpus->count; i++)
        d.nnuma = gpus->gpu[i].numa >= d.nnuma ? gpus->gpu[i].numa + 1 : d.nnuma;
    d.across = d.nnuma <= 1 ? 1 : d.nnuma <= 4 ? 2 : 4;
    d.numa_w = (WIDTH - 2 * MARGIN - (d.across - 1) * 10) / d.across;
    if (host->host[0] && host->cpu[0])
        snprintf(title, sizeof title, "%s: %s", host->host, host->cpu);
    else
        snprintf(title, sizeof title, "%s", host->cores ? host->source : gpus->source);
    why = picture(&d, file, title, &told, &ntold);
    free(told);
    if (why)
        fprintf(stderr, "rondo-info topo: --draw %s: %s\n", file, why);
    return why != NULL;
}
