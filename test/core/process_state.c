/* What a process has besides its memory is as it was: before and after librondo and libnccl.so.2 are loaded, after a
 * communicator is made on one node and on two, used, and destroyed. Signal handlers, masks and stack, rounding and
 * traps, locale, environment, umask, folder, limits, priority, cores and descriptors. The last rank has no environment
 * at all, as after clearenv. Ranks on one node have no UCX. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fenv.h>
#include <locale.h>
#include <rondo.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 2
#define MOST_FDS 1024
#define ENVIRONMENT 65536

typedef struct state {
    struct sigaction actions[65];
    sigset_t mask;
    stack_t stack;
    int round, flags, traps;
    char locale[256], environment[ENVIRONMENT], folder[4096];
    locale_t thread_locale;
    char **environ_at;
    mode_t umask;
    struct rlimit limits[RLIM_NLIMITS];
    cpu_set_t cores;
    int priority;
    char open[MOST_FDS]; /* by descriptor */
} state_t;

static int bad;

static void descriptors(char open[MOST_FDS])
{
    DIR *d = opendir("/proc/self/fd");
    memset(open, 0, MOST_FDS);
    for (struct dirent *e; d && (e = readdir(d));) {
        int fd = atoi(e->d_name);
        if (e->d_name[0] != '.' && fd != dirfd(d) && fd < MOST_FDS)
            open[fd] = 1;
    }
    if (d)
        closedir(d);
}

/* Bits beyond the last signal are not defined. */
static bool same_mask(const sigset_t *a, const sigset_t *b)
{
    int i = 1;
    while (i < 65 && sigismember(a, i) == sigismember(b, i))
        i++;
    return i == 65;
}

static void look(state_t *s)
{
    size_t used = 0;
    memset(s, 0, sizeof *s);
    for (int i = 1; i < 65; i++)
        sigaction(i, NULL, &s->actions[i]);
    pthread_sigmask(SIG_BLOCK, NULL, &s->mask);
    sigaltstack(NULL, &s->stack);
    s->round = fegetround();
    s->flags = fetestexcept(FE_ALL_EXCEPT);
    s->traps = fegetexcept();
    snprintf(s->locale, sizeof s->locale, "%s", setlocale(LC_ALL, NULL));
    s->thread_locale = uselocale((locale_t)0);
    s->environ_at = environ;
    for (char **e = environ; e && *e && used < ENVIRONMENT; e++)
        used += (size_t)snprintf(s->environment + used, ENVIRONMENT - used, "%s\n", *e);
    s->umask = umask(0);
    umask(s->umask);
    if (!getcwd(s->folder, sizeof s->folder))
        *s->folder = 0;
    for (int i = 0; i < RLIM_NLIMITS; i++)
        getrlimit((__rlimit_resource_t)i, &s->limits[i]);
    sched_getaffinity(0, sizeof s->cores, &s->cores);
    s->priority = getpriority(PRIO_PROCESS, 0);
    descriptors(s->open);
}

static void is(bool same, const char *when, const char *what)
{
    if (!same) {
        printf("process_state: %s: %s is not as before\n", when, what);
        bad++;
    }
}

#define SAME(what, member) is(memcmp(&before->member, &after.member, sizeof after.member) == 0, when, what)

/* While a communicator lives it has descriptors of 3 and more, and no other may be missing: `alive`. */
static void compare(const state_t *before, const char *when, bool alive)
{
    state_t after;
    look(&after);
    for (int i = 1; i < 65; i++) {
        char name[32];
        snprintf(name, sizeof name, "the handler of signal %d", i);
        is(before->actions[i].sa_handler == after.actions[i].sa_handler &&
               before->actions[i].sa_flags == after.actions[i].sa_flags &&
               same_mask(&before->actions[i].sa_mask, &after.actions[i].sa_mask),
           when, name);
    }
    is(same_mask(&before->mask, &after.mask), when, "the signal mask");
    SAME("the signal stack", stack);
    SAME("the rounding", round);
    SAME("the floating-point flags", flags);
    SAME("the floating-point traps", traps);
    SAME("the locale", locale);
    SAME("the thread's locale", thread_locale);
    SAME("the environment", environment);
    SAME("the environment's place", environ_at);
    SAME("the umask", umask);
    SAME("the folder", folder);
    SAME("a limit", limits);
    SAME("the cores", cores);
    SAME("the priority", priority);
    for (int fd = 0; fd < MOST_FDS; fd++) {
        char name[32];
        snprintf(name, sizeof name, "descriptor %d", fd);
        is(before->open[fd] == after.open[fd] || (alive && fd >= 3 && !before->open[fd]), when, name);
    }
}

static bool is_mapped(const char *what)
{
    char line[4400];
    bool found = false;
    FILE *f = fopen("/proc/self/maps", "re");
    while (f && fgets(line, sizeof line, f))
        found = found || strstr(line, what);
    if (f)
        fclose(f);
    return found;
}

static void ignore(int signal)
{
    (void)signal;
}

/* Nothing is as a process finds it. */
static void make_unusual(void)
{
    struct sigaction own = {.sa_handler = ignore, .sa_flags = SA_RESTART};
    sigset_t mask;
    struct rlimit core = {0, 4096};
    sigaddset(&own.sa_mask, SIGUSR2);
    sigaction(SIGSEGV, &own, NULL);
    sigaction(SIGTERM, &own, NULL);
    signal(SIGHUP, SIG_IGN);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    setlocale(LC_ALL, "C.UTF-8");
    umask(027);
    setrlimit(RLIMIT_CORE, &core);
    setenv("UCX_HANDLE_ERRORS", "bt", 1);
    unsetenv("UCX_LOG_LEVEL");
    fesetround(FE_UPWARD);
    feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
}

/* The functions of the library that was loaded. */
static struct {
    __typeof__(rondo_setting_set) *set;
    __typeof__(rondo_unique_id_create) *id;
    __typeof__(rondo_comm_create) *create;
    __typeof__(rondo_allreduce) *allreduce;
    __typeof__(rondo_comm_destroy) *destroy;
    __typeof__(rondo_last_error) *error;
} call;

static void *load(const char *name, const state_t *before)
{
    char path[4096], when[64];
    const char *build = getenv("top_builddir");
    snprintf(path, sizeof path, "%s/.libs/%s", build ? build : ".", name);
    if (access(path, R_OK) != 0) {
        printf("process_state: no %s was built\n", path);
        return NULL;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("process_state: %s\n", dlerror());
        exit(1);
    }
    snprintf(when, sizeof when, "%s is loaded", name);
    compare(before, when, false);
    is(!is_mapped("/libuc"), when, "what is mapped: UCX is there, which");
    return library;
}

static void find(void *library)
{
#define FIND(member, name) *(void **)&call.member = dlsym(library, name)
    FIND(set, "rondo_setting_set");
    FIND(id, "rondo_unique_id_create");
    FIND(create, "rondo_comm_create");
    FIND(allreduce, "rondo_allreduce");
    FIND(destroy, "rondo_comm_destroy");
    FIND(error, "rondo_last_error");
}

/* The program has no environment, not even an empty one. What the test wants of it is set in the other way. */
static void drop_environment(void)
{
    for (char **e = environ; e && *e; e++)
        if (strncmp(*e, "RONDO_", 6) == 0 && strncmp(*e, "RONDO_TEST_", 11) != 0) {
            char name[64];
            snprintf(name, sizeof name, "%.*s", (int)strcspn(*e, "="), *e);
            is(call.set(name, getenv(name)) == RONDO_SUCCESS, name, "a setting");
        }
    clearenv();
}

static void rank_main(int rank, int nodes, const rondo_unique_id_t *id)
{
    static state_t before;
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm = NULL;
    char host[16], when[64];
    const char *transport = getenv("RONDO_TRANSPORT"); /* the test is run with UCX and with libfabric */
    float one = 1, sum = 0;

    alarm(60);
    snprintf(host, sizeof host, "node%d", rank % nodes);
    if (nodes > 1)
        setenv("RONDO_HOSTID", host, 1);
    config.device = RONDO_DEVICE_HOST;
    if (rank == RANKS - 1 && !getenv("TEST_NET")) /* the tests' plugin is told by it what it is to be like */
        drop_environment();
    look(&before);
    rondo_result_t result = call.create(&comm, RANKS, id, rank, &config);
    if (result == RONDO_ERR_UNSUPPORTED && strstr(call.error(NULL), "built without UCX")) {
        printf("process_state: built without UCX: two nodes are left out\n");
        return;
    }
    is(result == RONDO_SUCCESS, call.error(NULL), "creation");
    snprintf(when, sizeof when, "made on %d nodes", nodes);
    compare(&before, when, true);
    const char *file = !transport                         ? "/libucs"
                       : strcmp(transport, "ofi") == 0    ? "/libfabric"
                       : strcmp(transport, "plugin") == 0 ? "/libnccl-net"
                                                          : "/libucs";
    is(is_mapped(file) == (nodes > 1), when, "what is mapped of UCX, libfabric or a net plugin");
    if (result != RONDO_SUCCESS)
        return;
    is(call.allreduce(&one, &sum, 1, RONDO_FLOAT32, RONDO_SUM, comm, NULL) == RONDO_SUCCESS && sum == RANKS, when,
       "allreduce");
    compare(&before, "after allreduce", true);
    is(call.destroy(comm) == RONDO_SUCCESS, when, "destroy");
    snprintf(when, sizeof when, "destroyed on %d nodes", nodes);
    compare(&before, when, false);
}

static void run(int nodes)
{
    rondo_unique_id_t id;
    pid_t ranks[RANKS];
    int status;
    if (call.id(&id) != RONDO_SUCCESS) {
        printf("process_state: %s\n", call.error(NULL));
        exit(1);
    }
    fflush(stdout);
    for (int r = 0; r < RANKS; r++) {
        if ((ranks[r] = fork()) == 0) {
            bad = 0;
            rank_main(r, nodes, &id);
            fflush(stdout);
            _exit(bad != 0);
        }
    }
    for (int r = 0; r < RANKS; r++) {
        waitpid(ranks[r], &status, 0);
        bad += status != 0;
    }
}

int main(void)
{
    static state_t before;
    setenv("RONDO_IFACE", "lo", 1);
    make_unusual();
    look(&before);
    void *library = load("librondo.so", &before);
    if (!library)
        return 77;
    (void)load("libnccl.so.2", &before);
    find(library);
    run(1);
    run(2);
    return bad != 0;
}
