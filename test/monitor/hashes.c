/* RONDO_HASH: the record has of each call what the rank gave and what it got, in calls and in groups, within a node and
 * between two. Ranks that get the same have the same hash, whatever memory it lies in; other data have another one;
 * each call is an entry, also one that repeats the one before it. rondo-ras analyse finds nothing then; and where a
 * rank's memory has got something else, which the parent writes into its dump, it names the first such call, and the
 * rank. A sender that writes into a buffer that it has given to a group is found out, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../tools/value.h"
#include "monitor/obedient.h"
#include "util/check.h"
#include "util/harness.h"
#include "util/text.h"

#define RANKS 3
#define ROOT 1
#define N 1000

enum { CALLS = 1, MESSAGES, CHANGED };

static char dir[] = "/tmp/rondo-hashes-XXXXXX";

typedef rondo_result_t (*step_fn)(int rank, rondo_comm_t comm, double *in, double *out);

static rondo_result_t reduce_all(int rank, rondo_comm_t comm, double *in, double *out)
{
    (void)rank;
    return rondo_allreduce(in, out + rank, N, RONDO_FLOAT64, RONDO_SUM, comm, NULL);
}

static rondo_result_t other_data(int rank, rondo_comm_t comm, double *in, double *out)
{
    in[N - 1] += rank;
    return reduce_all(rank, comm, in, out);
}

static rondo_result_t cast(int rank, rondo_comm_t comm, double *in, double *out)
{
    return rondo_broadcast(in, rank == ROOT ? in : out, N, RONDO_FLOAT64, ROOT, comm, NULL);
}

static rondo_result_t gather_all(int rank, rondo_comm_t comm, double *in, double *out)
{
    return rank == 0 ? rondo_allgather(in, out, 7, RONDO_INT8, comm, NULL)
                     : rondo_allgather(in, (char *)out + 3, 7, RONDO_INT8, comm, NULL);
}

static rondo_result_t gather_blocks(int rank, rondo_comm_t comm, double *in, double *out)
{
    static const size_t counts[RANKS] = {1, 0, 300};
    const size_t displs[RANKS] = {(size_t)rank, 2, 40 + (size_t)rank};

    return rondo_allgatherv(in, counts[rank], out, counts, displs, RONDO_FLOAT64, comm, NULL);
}

static rondo_result_t in_group(int rank, rondo_comm_t comm, double *in, double *out)
{
    rondo_result_t result = rondo_group_start();

    if (result == RONDO_SUCCESS)
        result = reduce_all(rank, comm, in, out);
    if (result == RONDO_SUCCESS)
        result = cast(rank, comm, in, out + N + RANKS);
    rondo_result_t ended = rondo_group_end();
    return result == RONDO_SUCCESS ? ended : result;
}

/* Which of the calls that these make give all ranks the same is clear: all. */
static rondo_result_t calls(int rank, rondo_comm_t comm)
{
    static const step_fn steps[] = {reduce_all, reduce_all, other_data, cast, gather_all, gather_blocks, in_group};
    static double in[RANKS * N], out[RANKS * N];
    rondo_result_t result = RONDO_SUCCESS;

    for (int i = 0; i < N; i++)
        in[i] = rank + 0.1 * i;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && result == RONDO_SUCCESS; i++)
        result = steps[i](rank, comm, in, out);
    return result;
}

/* From rank 0 to rank 2. */
static rondo_result_t message(int rank, rondo_comm_t comm, bool grouped, bool changes)
{
    static double buffer[N];
    rondo_result_t result = grouped ? rondo_group_start() : RONDO_SUCCESS;

    buffer[0] += rank;
    if (result == RONDO_SUCCESS && rank != 1)
        result = rank == 0 ? rondo_send(buffer, N, RONDO_FLOAT64, 2, comm, NULL)
                           : rondo_recv(buffer, N, RONDO_FLOAT64, 0, comm, NULL);
    if (changes && rank == 0)
        buffer[N - 1] += 1;
    rondo_result_t ended = grouped ? rondo_group_end() : RONDO_SUCCESS;
    return result == RONDO_SUCCESS ? ended : result;
}

static rondo_result_t obey(int what, int rank, rondo_comm_t comm)
{
    rondo_result_t result = RONDO_SUCCESS;

    switch (what) {
    case CALLS:
        return calls(rank, comm);
    case MESSAGES:
        for (int i = 0; i < 4 && result == RONDO_SUCCESS; i++)
            result = message(rank, comm, i & 1, false);
        return result;
    case CHANGED:
        return message(rank, comm, true, true);
    default:
        return rondo_comm_destroy(comm);
    }
}

static void ras(const char *command, const char *name, int status, const char *word)
{
    char line[512];

    snprintf(line, sizeof line, command, dir, name, dir);
    int got = obedient_ras(line, strncmp(command, "dump", 4) == 0 ? obedient_job : 0);
    CHECK(got == status && strstr(obedient_text, word), "rondo-ras %s: exit %d, want %d and '%s':\n%s", line, got,
          status, word, obedient_text);
}

static char *read_dump(const char *name, int rank, size_t *n)
{
    char path[160];
    char *text = calloc(1, 1 << 20);

    snprintf(path, sizeof path, "%s/%s/rondo_dump_%d.json", dir, name, rank);
    *n = text ? text_read(path, text, 1 << 20) : 0;
    CHECK(*n, "%s cannot be read", path);
    return text;
}

typedef struct hashes {
    char call[32], input[32], output[32];
} hashes_t;

/* Reads the calls of a rank, each of which must be an entry. Returns how many there are. */
static int read_calls(const char *name, int rank, hashes_t got[64])
{
    values_t values = {0};
    size_t bytes;
    char *text = read_dump(name, rank, &bytes);
    const value_t *list = value_of(value_read_json(&values, text, bytes), "calls");
    int n = 0;

    for (size_t i = 0; i < value_items(list) && n < 64; i++) {
        const value_t *call = value_item(list, i);
        CHECK(value_int(value_of(call, "calls"), 0, 1000, 0) == 1, "call %zu of rank %d is a run", i, rank);
        snprintf(got[n].call, sizeof got[n].call, "%s", value_text(value_of(call, "call")));
        snprintf(got[n].input, sizeof got[n].input, "%s", value_text(value_of(call, "input_hash")));
        snprintf(got[n].output, sizeof got[n].output, "%s", value_text(value_of(call, "output_hash")));
        n++;
    }
    value_free(&values);
    free(text);
    return n;
}

static void check_collectives(hashes_t of[RANKS][64])
{
    static const int kinds[] = {0, 0, 0, 1, 2, 2, 0, 1};
    static const char *const names[] = {"allreduce", "broadcast", "allgather"};

    for (int i = 0; i < 8; i++)
        for (int r = 0; r < RANKS; r++) {
            CHECK(strcmp(of[r][i].call, names[kinds[i]]) == 0 && of[r][i].output[0] &&
                      strcmp(of[r][i].output, of[0][i].output) == 0,
                  "call %d, %s: rank %d has got %s, rank 0 %s", i, of[r][i].call, r, of[r][i].output, of[0][i].output);
            bool reads = (kinds[i] != 1 || r == ROOT) && !(i == 5 && r == 1);
            CHECK((of[r][i].input[0] != 0) == reads, "call %d of rank %d: input '%s'", i, r, of[r][i].input);
        }
    CHECK(strcmp(of[ROOT][3].input, of[0][3].output) == 0, "what the root gave is not what others got");
    CHECK(strcmp(of[0][0].output, of[0][1].output) == 0, "equal data have other hashes");
    CHECK(strcmp(of[0][1].output, of[0][2].output) != 0 && strcmp(of[1][1].input, of[1][2].input) != 0,
          "other data have equal hashes");
    CHECK(strcmp(of[0][1].input, of[1][1].input) != 0, "ranks that give other data have equal hashes");
}

static void check_messages(hashes_t of[RANKS][64])
{
    for (int i = 8; i < 12; i++)
        CHECK(strcmp(of[0][i].call, "send") == 0 && strcmp(of[2][i].call, "recv") == 0 && of[0][i].input[0] &&
                  !of[0][i].output[0] && !of[2][i].input[0] && strcmp(of[0][i].input, of[2][i].output) == 0,
              "message %d: %s of %s, %s of %s", i, of[0][i].call, of[0][i].input, of[2][i].call, of[2][i].output);
    CHECK(strcmp(of[0][8].input, of[0][9].input) == 0, "the sender's buffer stays as it is");
}

/* Another rank gets something else in call `number`, by its dump. */
static void plant(const char *name, int rank, int number)
{
    char path[160], *text, *at;
    size_t n;

    text = at = read_dump(name, rank, &n);
    for (int i = 0; i < number && at; i++)
        at = strstr(at + 1, "\"output_hash\": \"");
    CHECK(at, "there is no call %d in the dump of rank %d", number, rank);
    if (at)
        memcpy(at + 16, "0123456789abcdef", 16);
    snprintf(path, sizeof path, "%s/%s/rondo_dump_%d.json", dir, name, rank);
    FILE *f = fopen(path, "w");
    CHECK(f && fwrite(text, 1, n, f) == n, "%s cannot be written", path);
    if (f)
        fclose(f);
    free(text);
}

static void look(int nodes)
{
    static hashes_t of[RANKS][64];
    char name[16], other[16];

    obedient_nodes = nodes;
    snprintf(name, sizeof name, "%d", nodes);
    snprintf(other, sizeof other, "%d-fr", nodes);
    obedient_start(RANKS, "hashes", obey);
    obedient_order_all(CALLS);
    obedient_order_all(MESSAGES);
    ras("dump -o %s/%s", name, 0, "3 dumps");
    for (int r = 0; r < RANKS; r++) {
        int n = read_calls(name, r, of[r]);
        CHECK(n == (r == 1 ? 8 : 12), "rank %d has %d calls in its dump", r, n);
    }
    check_collectives(of);
    check_messages(of);
    ras("analyse %s/%s", name, 0, "nothing is found");
    plant(name, 2, 6);
    plant(name, 2, 7);
    ras("analyse %s/%s", name, 4,
        "ranks did not get the same, for the first time in collective number 6, allgather (by tables, float64): "
        "rank 2 got 0123456789abcdef; ranks 0-1 got ");
    ras("convert --format fr %s/%s %s/fr", name, 0, "");
    ras("analyse %s/fr", name, 4, "collective number 6, allgather");
    obedient_order_all(CHANGED);
    ras("dump -o %s/%s-late", name, 0, "3 dumps");
    snprintf(other, sizeof other, "%d-late", nodes);
    ras("analyse %s/%s", other, 4, "rank 2 got other bytes than rank 0 sent, in message 5 from the one to the other");
    obedient_end();
}

int main(void)
{
    char line[128];

    test_begin("hashes", 120);
    if (!mkdtemp(dir)) {
        perror("mkdtemp");
        return 1;
    }
    setenv("RONDO_HASH", "1", 1);
    look(1);
    snprintf(line, sizeof line, "rm -r %s/fr", dir);
    CHECK(system(line) == 0, "%s", line);
    look(2);
    snprintf(line, sizeof line, "rm -r %s", dir);
    CHECK(system(line) == 0, "%s", line);
    return failures != 0;
}
