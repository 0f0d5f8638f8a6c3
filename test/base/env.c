/* Tunables: defaults, good values, bad values (an error that names the variable, the value and what is allowed), the
 * comparison between ranks, and the printed table.
 */
#include "base/env.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/check.h"

static const char *const cleared[] = {
    "RONDO_DEBUG",        "RONDO_DEBUG_FILE",    "RONDO_HOSTID",        "RONDO_ALGO",
    "RONDO_PROTO",        "RONDO_TRANSPORT",     "RONDO_IFACE",         "RONDO_PORTS",
    "RONDO_TIMEOUT_MS",   "RONDO_CHECK",         "RONDO_SLOT_BYTES",    "RONDO_SLOTS",
    "RONDO_SLICE_BYTES",  "RONDO_LL_MAX",        "RONDO_HUGE_PAGES",    "RONDO_CUDA_BANK",
    "RONDO_PROXY_BYTES",  "RONDO_PROXY_POLL_US", "RONDO_PROXY_ROUND",   "RONDO_PROXY_THREADS",
    "RONDO_CUDA_FIFOS",   "RONDO_CUDA_BLOCKS",   "RONDO_CUDA_COPY",     "RONDO_CUDA_SPARE",
    "RONDO_SPIN",         "RONDO_UCX_TLS",       "RONDO_TOPO_FILE",     "RONDO_CREATE_TIMEOUT_MS",
    "RONDO_CMA",          "RONDO_CMA_MIN",       "RONDO_NT_STORE",      "RONDO_TUNE",
    "RONDO_OFI_PROVIDER", "RONDO_DUMP_FORMAT",   "RONDO_TRAFFIC_CLASS", "RONDO_NET_PLUGIN"};

static void defaults(void)
{
    rd_env_t env;

    CHECK(rd_env_read(&env) == RONDO_SUCCESS, "%s", rd_thread_error());
    CHECK(env.debug == RD_LOG_WARN && env.timeout_ms == 0 && env.spin == -1 && env.check == 0, "defaults");
    CHECK(!env.algo[0] && !env.proto[0] && !env.hostid[0] && env.slots == 0 && env.ll_max == 2048, "defaults");
    CHECK(env.create_timeout_ms > 0 && env.huge_pages == 1, "defaults");
}

static void good(void)
{
    char names[512] = "";
    rd_env_t env;

    setenv("RONDO_SLOT_BYTES", "64K", 1);
    setenv("RONDO_PORTS", "5000-5009", 1);
    setenv("RONDO_ALGO", "allreduce=ring,broadcast=tree", 1);
    setenv("RONDO_SLOTS", "8", 1);
    setenv("RONDO_TIMEOUT_MS", "5000000000", 1);
    setenv("RONDO_PROTO", "", 1); /* empty is unset */
    CHECK(rd_env_read(&env) == RONDO_SUCCESS, "%s", rd_thread_error());
    CHECK(env.slot_bytes == 65536 && env.port_first == 5000 && env.port_last == 5009 && env.slots == 8, "values");
    CHECK(strcmp(env.algo, "allreduce=ring,broadcast=tree") == 0 && env.timeout_ms == INT64_C(5000000000), "values");
    setenv("RONDO_DUMP_FORMAT", "fr,json", 1);
    setenv("RONDO_PORTS", "5000", 1);
    CHECK(rd_env_read(&env) == RONDO_SUCCESS && env.port_first == 5000 && env.port_last == 5000, "one port");
    for (size_t i = 0; i < sizeof cleared / sizeof cleared[0]; i++)
        unsetenv(cleared[i]);
    for (int i = 0; i < 32; i++) /* as many as a p5.48xlarge has, by libfabric's names */
        sprintf(names + strlen(names), "%srdmap%d-rdm", i ? "," : "", 101 + i);
    setenv("RONDO_NET", names, 1);
    CHECK(rd_env_read(&env) == RONDO_SUCCESS && strcmp(env.net, names) == 0, "%s", rd_thread_error());
    unsetenv("RONDO_NET");
}

static void bad(void)
{
    static const char *const cases[][2] = {{"RONDO_DEBUG", "loud"},
                                           {"RONDO_PROTO", "ll256"},
                                           {"RONDO_PROTO", "ll;allreduce:ll256"},
                                           {"RONDO_PROTO", "ll;simple"},
                                           {"RONDO_PROTO", "allreduce:"},
                                           {"RONDO_PORTS", "20-10"},
                                           {"RONDO_PORTS", "1-70000"},
                                           {"RONDO_PORTS", "5x"},
                                           {"RONDO_TIMEOUT_MS", "-1"},
                                           {"RONDO_TIMEOUT_MS", "1s"},
                                           {"RONDO_CHECK", "2"},
                                           {"RONDO_SLOTS", "3"},
                                           {"RONDO_DUMP_FORMAT", "fr,pickle"},
                                           {"RONDO_DUMP_FORMAT", "fr,"},
                                           {"RONDO_DUMP_FORMAT", ",fr"},
                                           {"RONDO_SLOTS", "128"},
                                           {"RONDO_SLOT_BYTES", "65"},
                                           {"RONDO_SLOT_BYTES", "1G"},
                                           {"RONDO_SLOT_BYTES", "-64"},
                                           {"RONDO_SLICE_BYTES", "64KB"},
                                           {"RONDO_LL_MAX", "99999999999999999999"},
                                           {"RONDO_SPIN", "-2"},
                                           {"RONDO_HUGE_PAGES", "yes"},
                                           {"RONDO_CREATE_TIMEOUT_MS", "0"}};
    char longest[400];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rd_env_t env;

        memset(&env, 0x5a, sizeof env);
        setenv(cases[i][0], cases[i][1], 1);
        CHECK(rd_env_read(&env) == RONDO_ERR_INVALID_ARGUMENT, "%s=%s was taken", cases[i][0], cases[i][1]);
        CHECK(strstr(rd_thread_error(), cases[i][0]) && strstr(rd_thread_error(), cases[i][1]), "%s",
              rd_thread_error());
        CHECK(env.slots == 0x5a5a5a5a, "written on failure");
        unsetenv(cases[i][0]);
    }
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    for (size_t i = 0; i < 6; i++) {
        static const char *const texts[] = {"RONDO_HOSTID",  "RONDO_ALGO",      "RONDO_IFACE",
                                            "RONDO_UCX_TLS", "RONDO_TOPO_FILE", "RONDO_PROTO"};
        rd_env_t env;

        setenv(texts[i], longest, 1);
        CHECK(rd_env_read(&env) == RONDO_ERR_INVALID_ARGUMENT, "%s of %zu characters was taken", texts[i],
              sizeof longest - 1);
        unsetenv(texts[i]);
    }
}

/* What ranks must agree on, each with a value that is not the standard, and how that is written. */
static const char *const agreed[][3] = {
    {"RONDO_ALGO", "allreduce=ring", "'allreduce=ring'"},
    {"RONDO_PROTO", "simple", "'simple'"},
    {"RONDO_TRANSPORT", "shm", "'shm'"},
    {"RONDO_CHECK", "1", "1"},
    {"RONDO_MONITOR", "0", "0"},
    {"RONDO_SLOT_BYTES", "65536", "64K"},
    {"RONDO_SLOTS", "4", "4"},
    {"RONDO_SLICE_BYTES", "64K", "64K"},
    {"RONDO_LL_MAX", "0", "0"},
    {"RONDO_CMA", "0", "0"},
    {"RONDO_ORDER", "rank", "'rank'"},
    {"RONDO_COLLNET", "1", "1"},
    {"RONDO_CMA_MIN", "1M", "1M"},
    {"RONDO_P2P", "0", "0"},
    {"RONDO_CUDA_BANK", "1M", "1M"},
    {"RONDO_PROXY_BYTES", "1M", "1M"},
    {"RONDO_PROXY_ROUND", "64K", "64K"},
    {"RONDO_PROXY_THREADS", "2", "2"},
    {"RONDO_GDR", "1", "1"},
    {"RONDO_GDR_MIN", "1M", "1M"},
    {"RONDO_GDR_COLL_MIN", "1M", "1M"},
    {"RONDO_GDR_SCRATCH", "1M", "1M"},
    {"RONDO_CUDA_FIFOS", "4", "4"},
    {"RONDO_CUDA_CHANNELS", "4", "4"},
    {"RONDO_CUDA_LONG", "64K", "64K"},
    {"RONDO_CUDA_SPARE", "0", "0"},
    {"RONDO_CUDA_COPY", "4M", "4M"},
    {"RONDO_CUDA_STAGING", "1M", "1M"},
    {"RONDO_CTA_POLICY", "zero", "'zero'"},
    {"RONDO_CUDA_BLOCKS", "32", "32"},
    {"RONDO_CUDA_BLOCKS_LEAST", "16", "16"},
    {"RONDO_TRAFFIC_CLASS", "96", "96"},
    {"RONDO_OFI_PROVIDER", "tcp", "'tcp'"},
};
#define AGREED (sizeof agreed / sizeof agreed[0])

/* Those of the printed table that are marked, which no table of this test can forget. */
static size_t marked(void)
{
    size_t bytes = 0, count = 0;
    char *text = NULL;
    FILE *f = open_memstream(&text, &bytes);

    if (!f)
        exit(1);
    rd_env_print(f);
    fclose(f);
    for (const char *at = text; (at = strstr(at, "[alike on all ranks]")) != NULL; at++)
        count++;
    free(text);
    return count;
}

static void alike(void)
{
    char of_a[RD_ENV_TEXT], of_b[RD_ENV_TEXT];
    rd_env_alike_t a, b;
    rd_env_t env;

    CHECK(marked() == AGREED, "%zu variables are marked alike, but `agreed` of this test has %zu rows", marked(),
          AGREED);
    CHECK(rd_env_read(&env) == RONDO_SUCCESS, "%s", rd_thread_error());
    rd_env_alike(&env, &a);
    strcpy(env.hostid, "elsewhere"); /* may differ */
    env.timeout_ms = 7;
    rd_env_alike(&env, &b);
    CHECK(!rd_env_difference(&a, &b, of_a, of_b), "%s", rd_env_difference(&a, &b, of_a, of_b));
    for (size_t i = 0; i < AGREED; i++) {
        setenv(agreed[i][0], agreed[i][1], 1);
        CHECK(rd_env_read(&env) == RONDO_SUCCESS, "%s", rd_thread_error());
        unsetenv(agreed[i][0]);
        rd_env_alike(&env, &b);
        const char *name = rd_env_difference(&a, &b, of_a, of_b);
        CHECK(name && strcmp(name, agreed[i][0]) == 0, "%s: found %s", agreed[i][0], name ? name : "nothing");
        CHECK(strcmp(of_b, agreed[i][2]) == 0 && strcmp(of_a, of_b) != 0, "%s: %s and %s", agreed[i][0], of_a, of_b);
    }
}

/* Names of earlier releases: each works alone, the present one stands above it, and an error says the one that is set.
 */
static void renamed(void)
{
    static const char *const old[][3] = {
        {"RONDO_PULL", "RONDO_CMA", "0"},
        {"RONDO_PULL_MIN", "RONDO_CMA_MIN", "1M"},
        {"RONDO_CUDA_STAGE", "RONDO_PROXY_BYTES", "1M"},
        {"RONDO_CUDA_ROUND", "RONDO_PROXY_ROUND", "64K"},
        {"RONDO_CUDA_CREWS", "RONDO_PROXY_THREADS", "2"},
        {"RONDO_NET_DIRECT", "RONDO_GDR", "1"},
        {"RONDO_NET_DIRECT_MIN", "RONDO_GDR_MIN", "1M"},
    };
    char of_a[RD_ENV_TEXT], of_b[RD_ENV_TEXT];
    rd_env_alike_t standard, by_old, by_new;
    rd_env_t env;

    CHECK(rd_env_read(&env) == RONDO_SUCCESS, "%s", rd_thread_error());
    rd_env_alike(&env, &standard);
    for (size_t i = 0; i < sizeof old / sizeof old[0]; i++) {
        CHECK(strcmp(old[i][0], old[i][1]) != 0, "%s is no old name", old[i][0]);
        setenv(old[i][0], old[i][2], 1);
        CHECK(rd_env_read(&env) == RONDO_SUCCESS, "%s", rd_thread_error());
        rd_env_alike(&env, &by_old);
        const char *name = rd_env_difference(&standard, &by_old, of_a, of_b);
        CHECK(name && strcmp(name, old[i][1]) == 0, "%s sets %s", old[i][0], name ? name : "nothing");
        setenv(old[i][0], "no value", 1);
        CHECK(rd_env_read(&env) == RONDO_ERR_INVALID_ARGUMENT && strstr(rd_thread_error(), old[i][0]), "%s",
              rd_thread_error());
        setenv(old[i][1], old[i][2], 1);
        CHECK(rd_env_read(&env) == RONDO_SUCCESS, "%s does not stand above %s", old[i][1], old[i][0]);
        rd_env_alike(&env, &by_new);
        CHECK(!rd_env_difference(&by_old, &by_new, of_a, of_b), "%s and %s differ", old[i][0], old[i][1]);
        unsetenv(old[i][0]);
        unsetenv(old[i][1]);
    }
    setenv("RONDO_PROTO", "pull", 1);
    CHECK(rd_env_read(&env) == RONDO_SUCCESS && strcmp(env.proto, "cma") == 0, "%s", env.proto);
    unsetenv("RONDO_PROTO");
}

/* And a line of the log says so: by a child, since it is said once a process. */
static void renamed_said(void)
{
    char said[4096];
    ssize_t bytes = 0, got;
    rd_env_t env;
    int fd[2];

    CHECK(pipe(fd) == 0, "no pipe");
    pid_t child = fork();
    if (child == 0) {
        dup2(fd[1], 2);
        setenv("RONDO_PULL", "0", 1);
        setenv("RONDO_PROTO", "pull", 1);
        _exit(rd_env_read(&env) != RONDO_SUCCESS);
    }
    close(fd[1]);
    while (bytes < (ssize_t)sizeof said - 1 && (got = read(fd[0], said + bytes, sizeof said - 1 - (size_t)bytes)) > 0)
        bytes += got;
    said[bytes] = '\0';
    close(fd[0]);
    waitpid(child, NULL, 0);
    CHECK(strstr(said, "RONDO_PULL is called RONDO_CMA now"), "said: %s", said);
    CHECK(strstr(said, "RONDO_PROTO=pull is called cma now"), "said: %s", said);
}

static void printed(void)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);

    if (!f)
        exit(1);
    rd_env_print(f);
    fclose(f);
    for (size_t i = 0; i < sizeof cleared / sizeof cleared[0]; i++)
        CHECK(strstr(text, cleared[i]), "%s is not in the table", cleared[i]);
    free(text);
}

static void bytes(void)
{
    static const char *const bad_texts[] = {
        "", "K", "-1", "1KK", "1 K", "0x10", "99999999999999999999", "99999999999G"};
    char text[24];
    uint64_t value;

    CHECK(rd_bytes_parse("0", &value) == 0 && value == 0, "0");
    CHECK(rd_bytes_parse("3k", &value) == 0 && value == 3072, "3k");
    CHECK(rd_bytes_parse("2G", &value) == 0 && value == UINT64_C(2) << 30, "2G");
    for (size_t i = 0; i < sizeof bad_texts / sizeof bad_texts[0]; i++)
        CHECK(rd_bytes_parse(bad_texts[i], &value) == -1, "\"%s\" was taken", bad_texts[i]);
    CHECK(strcmp(rd_bytes_print(65536, text), "64K") == 0, "%s", text);
    CHECK(strcmp(rd_bytes_print(65537, text), "65537") == 0, "%s", text);
}

int main(void)
{
    alarm(30);
    for (size_t i = 0; i < sizeof cleared / sizeof cleared[0]; i++)
        unsetenv(cleared[i]);
    renamed_said();
    rd_log_set_level(RD_LOG_NONE);
    defaults();
    good();
    rd_log_set_level(RD_LOG_NONE);
    bad();
    alike();
    renamed();
    printed();
    bytes();
    return failures != 0;
}
