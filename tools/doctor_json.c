/* The doctor's findings as JSON: see doctor_json.h. It is written as it is found, so a run that is ended leaves a
 * document without its end. */
#include "doctor_json.h"

#include <stdio.h>

#include "monitor/out.h"

static bool on, more; /* more: there is a finding before */
static const char *area = "";

static void string(const char *text)
{
    char c[RD_JSON_CHAR];

    putchar('"');
    for (; *text; text++)
        fwrite(c, 1, (size_t)rd_out_json_char(*text, c), stdout);
    putchar('"');
}

/* ,"name":"text", or null where there is no text. */
static void member(const char *name, const char *text)
{
    printf(",\"%s\":", name);
    if (text)
        string(text);
    else
        printf("null");
}

bool doctor_json_is_on(void)
{
    return on;
}

void doctor_json_begin(bool network)
{
    const int v = rondo_version();

    on = true;
    printf("{\"format\":1,\"rondo\":\"%d.%d.%d\",\"network\":%s,", v / 10000, v / 100 % 100, v % 100,
           network ? "true" : "false");
    if (!network)
        printf("\"findings\":[");
}

void doctor_json_area(const char *title)
{
    area = title;
}

void doctor_json_finding(info_verdict_t verdict, const char *name, const char *what, const char *advice)
{
    static const char *const words[] = {"ok", "note", "wrong"};

    printf("%s\n{\"state\":\"%s\"", more ? "," : "", words[verdict]);
    member("area", area);
    member("name", name);
    member("what", what);
    member("advice", advice);
    printf("}");
    fflush(stdout);
    more = true;
}

static void node(const nodes_node_t *n)
{
    printf("{\"rank\":%d", n->rank);
    member("name", n->name);
    member("interface", n->meet.name);
    member("address", n->meet.address);
    printf(",\"mbit\":%d,\"mtu\":%d", n->meet.mbit, n->meet.mtu);
    member("library", *n->version ? n->version : NULL);
    member("devices", n->devices);
    printf(",\"gpus\":%d}", n->gpus);
}

/* Rates are printed as integers and thousandths, for a locale may write a comma. */
static void number(const char *name, double value)
{
    const long long thousandths = (long long)(value * 1000 + 0.5);

    printf(",\"%s\":%lld.%03lld", name, thousandths / 1000, thousandths % 1000);
}

static void way(const nodes_view_t *view, int from, int to)
{
    static const char *const stages[] = {[WAY_UNTRIED] = "untried", [WAY_BLOCKED] = "blocked", [WAY_NO_START] = "fails",
                                         [WAY_NO_SMALL] = "mute",   [WAY_NO_LARGE] = "stalls", [WAY_DONE] = "measured"};
    const nodes_way_t *w = nodes_way(view, from, to);

    printf("{\"from\":%d,\"to\":%d,\"state\":\"%s\"", from, to, stages[w->stage]);
    if (w->stage == WAY_DONE) {
        number("us", w->us);
        number("gbps", w->gbps);
        number("resent", w->resent);
    }
    member("text", w->text);
    printf("}");
}

void doctor_json_nodes(const nodes_view_t *view, int nranks)
{
    const char *comma = "";

    if (!on)
        return;
    printf("\"ranks\":%d,\"nodes\":[", nranks);
    for (int i = 0; i < view->n; i++) {
        printf("%s\n", i ? "," : "");
        node(&view->node[i]);
    }
    printf("],\"ways\":[");
    for (int i = 0; i < view->n * view->n; i++) {
        if (i / view->n == i % view->n)
            continue;
        printf("%s\n", comma);
        way(view, i / view->n, i % view->n);
        comma = ",";
    }
    printf("],\"findings\":[");
}

void doctor_json_end(const int found[3])
{
    printf("],\n\"ok\":%d,\"note\":%d,\"wrong\":%d}\n", found[INFO_WELL], found[INFO_NOTE], found[INFO_WRONG]);
    fflush(stdout);
}
