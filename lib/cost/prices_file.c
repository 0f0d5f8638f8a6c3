/* Prices as text, in a file written by rondo-tune, and the number by which ranks compare their prices. See prices.h.
 *
 *     shm.simple.alpha 0.24          a price: transport, protocol, name (rd_price_t)
 *     cuda.ring.ll128.rate 335000    one of a kernel between GPUs (rd_gpu_price_t)
 *     near 1572864                   one that has no protocol (rd_prices_t)
 *     stream adapt                   how slots are written
 */
#include "cost/prices.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/numbers.h"

#define LINE 256

static const char *const transports[] = {"shm", "net"}, *const nt_stores[] = {"never", "always", "adapt"};

static const struct {
    const char *name;
    size_t at;
} parts[] = {{"alpha", offsetof(rd_price_t, alpha)}, {"message", offsetof(rd_price_t, message)},
             {"start", offsetof(rd_price_t, start)}, {"beta", offsetof(rd_price_t, beta)},
             {"cross", offsetof(rd_price_t, cross)}, {"gamma", offsetof(rd_price_t, gamma)},
             {"store", offsetof(rd_price_t, store)}},
  singles[] = {{"call", offsetof(rd_prices_t, call)},       {"turn", offsetof(rd_prices_t, turn)},
               {"overlap", offsetof(rd_prices_t, overlap)}, {"contact", offsetof(rd_prices_t, contact)},
               {"far", offsetof(rd_prices_t, far)},         {"near", offsetof(rd_prices_t, near)},
               {"memory", offsetof(rd_prices_t, memory)},   {"llc", offsetof(rd_prices_t, llc)},
               {"wire", offsetof(rd_prices_t, wire)},       {"peer", offsetof(rd_prices_t, peer)},
               {"peers", offsetof(rd_prices_t, peers)},     {"cuda.links", offsetof(rd_prices_t, links)}},
  gpu_parts[] = {{"alpha", offsetof(rd_gpu_price_t, alpha)},
                 {"hop", offsetof(rd_gpu_price_t, hop)},
                 {"rate", offsetof(rd_gpu_price_t, rate)},
                 {"pass", offsetof(rd_gpu_price_t, pass)}};
#define PARTS (int)(sizeof parts / sizeof parts[0])
#define SINGLES (int)(sizeof singles / sizeof singles[0])
#define GPU_PARTS (int)(sizeof gpu_parts / sizeof gpu_parts[0])

/* Returns the i-th price between GPUs, or NULL behind the last. Copies have none: they are never chosen by price. */
static double *gpu_at(rd_prices_t *prices, int i, char *name)
{
    int part = i % GPU_PARTS, proto = i / GPU_PARTS % RD_GPU_PROTOS, nth = i / GPU_PARTS / RD_GPU_PROTOS;

    for (int a = 0; rd_algos[a]; a++) {
        rd_kernel_t kernel = rd_algos[a]->device.kernel;
        if (kernel == RD_KERNEL_NONE || kernel == RD_KERNEL_COPY || nth-- > 0)
            continue;
        snprintf(name, RD_PRICE_NAME, "cuda.%s.%s.%s", rd_algos[a]->name, rd_proto_name((rd_proto_t)proto),
                 gpu_parts[part].name);
        return (double *)(void *)((char *)&prices->gpu[a][proto] + gpu_parts[part].at);
    }
    return NULL;
}

/* The protocols of host memory, in the order of the file. */
static const rd_proto_t protos[] = {RD_PROTO_LL, RD_PROTO_SIMPLE, RD_PROTO_CMA, RD_PROTO_BOARD_LL, RD_PROTO_BOARD};
#define PROTOS (int)(sizeof protos / sizeof protos[0])

double *rd_prices_at(rd_prices_t *prices, int i, char *name)
{
    int of = i / PARTS, transport = of / PROTOS, rest = i - RD_NUM_PRICES * PROTOS * PARTS, gpu = rest - SINGLES;

    if (gpu >= 0)
        return gpu_at(prices, gpu, name);
    if (rest >= 0) {
        strcpy(name, singles[rest].name);
        return (double *)(void *)((char *)prices + singles[rest].at);
    }
    rd_proto_t proto = protos[of % PROTOS];
    snprintf(name, RD_PRICE_NAME, "%s.%s.%s", transports[transport], rd_proto_name(proto), parts[i % PARTS].name);
    return (double *)(void *)((char *)&prices->of[transport][proto] + parts[i % PARTS].at);
}

static int nt_store_parse(const char *text, rd_nt_store_t *nt_store)
{
    for (int i = 0; i < 3; i++)
        if (strcmp(nt_stores[i], text) == 0) {
            *nt_store = (rd_nt_store_t)i;
            return 0;
        }
    return -1;
}

/* A price of zero would make something free, and so always chosen: only what may really take nothing may be zero. */
static bool may_be_zero(const char *name)
{
    static const char *const ends[] = {"overlap", "contact", "start", "gamma", "store", "memory", "llc", "hop", "pass"};
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (strcmp(dot ? dot + 1 : name, ends[i]) == 0)
            return true;
    return false;
}

static int number_parse(const char *name, const char *text, double *number)
{
    locale_t before = rd_numbers_begin();
    char *end;
    double value = strtod(text, &end);

    rd_numbers_end(before);
    if (end == text || *end || !isfinite(value) || value < 0 || value > 1e12)
        return -1;
    if (value == 0 && !may_be_zero(name))
        return -1;
    *number = value;
    return 0;
}

/* The present name of a price in a file of an earlier release. */
static const char *name_now(const char *name, char now[RD_PRICE_NAME])
{
    const char *old = strstr(name, ".pull.");

    if (!old)
        return name;
    snprintf(now, RD_PRICE_NAME, "%.*s.%s.%s", (int)(old - name), name, rd_proto_name(RD_PROTO_CMA),
             old + strlen(".pull."));
    return now;
}

/* Returns 0, or -1 and what is wrong. */
static int line_read(rd_prices_t *prices, char *line, const char **wrong)
{
    char *rest, name[RD_PRICE_NAME], now[RD_PRICE_NAME], *key = strtok_r(line, " \t\r\n", &rest),
                                                         *value = key ? strtok_r(NULL, " \t\r\n", &rest) : NULL;
    double *number = NULL;

    if (!key)
        return 0;
    *wrong = "a name and a value are wanted";
    if (!value || strtok_r(NULL, " \t\r\n", &rest))
        return -1;
    *wrong = "stream is never, always or adapt";
    if (strcmp(key, "stream") == 0)
        return nt_store_parse(value, &prices->nt_store);
    *wrong = "there is no such price";
    const char *wanted = name_now(key, now);
    for (int i = 0; (number = rd_prices_at(prices, i, name)) && strcmp(name, wanted) != 0;)
        i++;
    if (!number)
        return -1;
    *wrong = "a price is a number above zero";
    return number_parse(wanted, value, number);
}

/* Takes the next line without its comment, which may be of any length. Returns false at the end of the file. `whole` is
 * false if the rest is longer than there is room for. */
static bool line_next(FILE *f, char line[LINE], bool *whole)
{
    bool comment = false;
    size_t n = 0;
    int c;

    *whole = true;
    while ((c = getc(f)) != EOF && c != '\n') {
        comment |= c == '#';
        *whole &= comment || n < LINE - 1;
        if (!comment && n < LINE - 1)
            line[n++] = (char)c;
    }
    line[n] = '\0';
    return c != EOF || n > 0;
}

rondo_result_t rd_prices_read(rd_prices_t *prices, const char *file, rd_log_ctx_t *ctx)
{
    rondo_result_t result = RONDO_SUCCESS;
    rd_prices_t read = *prices;
    char line[LINE], text[LINE];
    const char *wrong = NULL;
    FILE *f = rd_file_read(file);
    bool whole;

    if (!f)
        return rd_error(ctx, RONDO_ERR_INVALID_ARGUMENT,
                        "RONDO_TUNE=%s: %s; it must be a file of rondo-tune, or the name of built-in prices", file,
                        strerror(errno));
    for (int n = 1; result == RONDO_SUCCESS && line_next(f, line, &whole); n++) {
        strcpy(text, line);
        if (line_read(&read, line, &wrong) != 0 || (!whole && (wrong = "it is too long")))
            result = rd_error(ctx, RONDO_ERR_INVALID_ARGUMENT, "RONDO_TUNE=%s, line %d, \"%.60s\": %s", file, n, text,
                              wrong);
    }
    if (result == RONDO_SUCCESS && ferror(f))
        result = rd_error(ctx, RONDO_ERR_INVALID_ARGUMENT, "RONDO_TUNE=%s cannot be read", file);
    fclose(f);
    if (result == RONDO_SUCCESS)
        *prices = read;
    return result;
}

void rd_prices_write(const rd_prices_t *prices, FILE *file)
{
    rd_prices_t all = *prices;
    char name[RD_PRICE_NAME];
    double *number;
    locale_t before = rd_numbers_begin();

    for (int i = 0; (number = rd_prices_at(&all, i, name)); i++)
        fprintf(file, "%-20s %.6g\n", name, *number);
    rd_numbers_end(before);
    fprintf(file, "%-20s %s\n", "stream", nt_stores[prices->nt_store]);
}

uint64_t rd_prices_hash(const rd_prices_t *prices)
{
    rd_prices_t all = *prices;
    uint64_t h = 0xcbf29ce484222325u ^ (uint64_t)prices->nt_store;
    char name[RD_PRICE_NAME];
    double *number;

    for (int i = 0; (number = rd_prices_at(&all, i, name)); i++) {
        uint64_t word;
        memcpy(&word, number, sizeof word);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h ? h : 1;
}
