/* rondo-ras: what the jobs of this host do, and who holds them up. It reads the records that rondo's processes keep of
 * their calls (lib/monitor); no thread of a job takes part, so it also works while all of them are stopped. */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <rondo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "ras.h"

static const char usage[] =
    "NAME\n"
    "    rondo-ras - show what the jobs of this host do, and which rank holds them up\n"
    "\n"
    "SYNOPSIS\n"
    "    rondo-ras list   [--json] [--job PID] [--dir DIR]\n"
    "    rondo-ras status [-v] [--json] [--job PID] [--dir DIR]\n"
    "    rondo-ras who    [--json] [--job PID] [--dir DIR]\n"
    "    rondo-ras top    [-n PAGES] [-d SECONDS] [--job PID] [--dir DIR]\n"
    "    rondo-ras dump   [--format FORMAT] [--from DIR] [--job PID] [--dir DIR] -o DIR\n"
    "    rondo-ras trace  [--from DIR] [--job PID] [--dir DIR] -o FILE\n"
    "    rondo-ras metrics [-o FILE] [-d SECONDS] [-n TIMES] [--job PID] [--dir DIR]\n"
    "    rondo-ras monitor [--format FORMAT] [--stall SECONDS] [-d SECONDS] [-n LOOKS] [--job PID] [--dir DIR]\n"
    "    rondo-ras stacks [--all] [--tool NAME] [--timeout SECONDS] [--job PID] [--dir DIR] [RANK ...]\n"
    "    rondo-ras COMMAND --host HOST:PORT[,...] [--key FILE] ...\n"
    "    rondo-ras convert [--format FORMAT] IN OUT\n"
    "    rondo-ras analyse [--json] DIR\n"
    "    rondo-ras --version | --help\n"
    "\n"
    "DESCRIPTION\n"
    "    Each process that has a communicator of rondo keeps a record of its calls, which the other processes of its\n"
    "    node hold, too (RONDO_MONITOR). rondo-ras reads the records of this user's processes; root reads all. The\n"
    "    job takes no part in that: it may be stopped, and what a killed process did last is seen as long as one of\n"
    "    its node lives, or if RONDO_MONITOR_DIR kept the record as a file.\n"
    "\n"
    "    list: the processes. A job is the processes that share communicators; its number is its lowest pid.\n"
    "\n"
    "    status: the communicators, and where their ranks are; ranks that are alike are on one line.\n"
    "\n"
    "    who: who is dead, stopped, late or has left, in a sentence for each communicator that is held up, or\n"
    "    \"unknown\" where records and kernel do not show it; of one that has failed its error. Looks twice, 0.7 s\n"
    "    apart. On GPUs the calls that are known are those that were enqueued; who is late there is known from\n"
    "    kernels that wait.\n"
    "\n"
    "    top: a page each second: calls and bytes of each rank, which part of the last eight seconds it has waited,\n"
    "    where it is, and whom it waits for. A narrow terminal has fewer columns.\n"
    "\n"
    "    dump: a file of each process, with what the record has of its last calls: rondo_dump_RANK.json in the "
    "folder,\n"
    "    which is made if it is not there. Dead processes are dumped, too, as long as there is their record.\n"
    "    --format fr: as PyTorch's flight recorder has them, rondo_trace_RANK, for torchfrtrace.\n"
    "\n"
    "    trace: the same calls in one file for a viewer of traces, ui.perfetto.dev or chrome://tracing: a track for "
    "each\n"
    "    rank and communicator, and an arrow from who waits to whom it waits for.\n"
    "\n"
    "    metrics: counts, waits and verdicts as text for Prometheus, once, or each -d seconds: FILE is replaced "
    "whole.\n"
    "\n"
    "    monitor: a line for each thing that happens: jobs that begin and end, communicators that are made and "
    "ended,\n"
    "    ranks that die, calls that fail, calls that are held up, by whom, and that go on. Until it is interrupted; "
    "with\n"
    "    --job, until that job has ended; its first communicator is waited for.\n"
    "\n"
    "    stacks: where each thread stands of these ranks, or of those that who names, or if it names none of all, "
    "with\n"
    "    what its record says of it. A debugger shows that, eu-stack, gdb or pstack, the first one that is installed; "
    "a\n"
    "    process stands still meanwhile. Without one, and where none may look: the system call of each thread, and "
    "where\n"
    "    it waits in the kernel.\n"
    "\n"
    "    convert: reads a dump, or all in a folder, of rondo's own or of PyTorch's flight recorder, and writes them "
    "in\n"
    "    another format, so that dumps of several hosts come together, too.\n"
    "\n"
    "    analyse: reads the same, and says what who would have said, and where ranks do not call the same.\n"
    "\n"
    "OPTIONS\n"
    "    -v           status: a line for each rank, with its pid and its counts\n"
    "    --all        stacks: of all ranks\n"
    "    --json       list, status, who, monitor, analyse: for programs\n"
    "    --job PID    this job alone: its number, or a process of it\n"
    "    --dir DIR    also the records in this folder (default: RONDO_MONITOR_DIR)\n"
    "    --user USER  also the processes of that user, who has allowed it (RONDO_RAS_GROUP)\n"
    "    --format F   dump, convert: json (default), fr or chrome (as trace); monitor: text (default) or json, of "
    "which\n"
    "                 each line is an object\n"
    "    --host H:P   list, status, who, dump, trace, metrics: the processes of other hosts alone, several by comma,\n"
    "                 which listen at that port (RONDO_RAS_ADDR), judged together\n"
    "    --key FILE   the secret for that (default: RONDO_RAS_KEY)\n"
    "    --stall S    monitor: how long a call waits until that is said (default 10)\n"
    "    --tool NAME  stacks: eu-stack, gdb, pstack, py-spy (frames of Python), or none, which stops nothing\n"
    "    --timeout S  stacks: for one process (default 20)\n"
    "    --from DIR   dump, trace: the records in this folder alone, of jobs that have ended\n"
    "    -o DIR       dump: where the files are written; none of theirs may be there\n"
    "    -o FILE      trace, metrics: the file, which is replaced if it is there; -: the output\n"
    "    -n PAGES     top, metrics, monitor: ends after so many (default: until it is interrupted)\n"
    "    -d SECONDS   top, monitor: between two looks (default 1); metrics: between two files\n"
    "\n"
    "EXIT STATUS\n"
    "    0 good; who: nobody is waited for; analyse: nothing is found. 1 no record was found, or none could be read;\n"
    "    2 usage.\n"
    "    who, monitor, analyse: 3 a rank is late; 4 a rank is dead or stopped, or has left, or calls something else; 5 "
    "ranks\n"
    "    wait, and it is unknown why. who, analyse: 6 nothing stands still, and a rank or a link is slow.\n"
    "\n"
    "EXAMPLES\n"
    "    rondo-ras who\n"
    "    watch rondo-ras status\n"
    "    rondo-ras trace -o trace.json\n"
    "    rondo-ras dump --format fr -o dumps && torchfrtrace dumps\n";

typedef struct command {
    const char *name;
    int (*run)(rd_view_t *view, const ras_options_t *options);
    int (*run_files)(const ras_options_t *options); /* looks at files instead, which are its arguments */
    bool has_hosts;                                 /* can `run` look at other hosts? */
    bool waits;                                     /* does it go on where there is nothing yet? */
    bool has_args;                                  /* of `run` */
    bool has_no_json;
} command_t;

static const command_t commands[] = {
    {.name = "list", .run = ras_list, .has_hosts = true},
    {.name = "status", .run = ras_status, .has_hosts = true},
    {.name = "who", .run = ras_who, .has_hosts = true},
    {.name = "top", .run = ras_top, .waits = true, .has_no_json = true},
    {.name = "dump", .run = ras_dump, .has_hosts = true},
    {.name = "trace", .run = ras_trace, .has_hosts = true},
    {.name = "metrics", .run = ras_metrics, .has_hosts = true, .waits = true, .has_no_json = true},
    {.name = "monitor", .run = ras_monitor, .waits = true},
    {.name = "stacks", .run = ras_stacks, .has_args = true, .has_no_json = true},
    {.name = "convert", .run_files = ras_convert},
    {.name = "analyse", .run_files = ras_analyse},
};

static int wrong(const char *what, const char *value)
{
    fprintf(stderr, "rondo-ras: %s%s%s; see rondo-ras --help\n", what, value ? ": " : "", value ? value : "");
    return RAS_USAGE;
}

static bool find_user(const char *name, int64_t *user)
{
    const struct passwd *found = getpwnam(name);
    const char *end;
    long value = 0;

    if (found) {
        *user = (int64_t)found->pw_uid;
        return true;
    }
    end = number_begins(name, 0, UINT32_MAX - 1L, &value);
    if (!end || *end)
        return false;
    *user = value;
    return true;
}

/* Takes an option whose argument is a number. Returns 0, or the exit status. */
static int take_number(int c, ras_options_t *options)
{
    switch (c) {
    case 'J':
        return number_is(optarg, 1, INT32_MAX, &options->job)
                   ? 0
                   : wrong("--job needs the number of a job, as list shows it", optarg);
    case 'n':
        return number_is(optarg, 1, 1000000000, &options->count) ? 0 : wrong("-n needs a number of pages", optarg);
    case 'd':
        return number_real_is(optarg, 0.01, 1e6, &options->seconds) ? 0 : wrong("-d needs a number of seconds", optarg);
    case 's':
        return number_real_is(optarg, 0, 1e6, &options->stall) ? 0 : wrong("--stall needs a number of seconds", optarg);
    case 'T':
        return number_real_is(optarg, 0.1, 86400, &options->timeout)
                   ? 0
                   : wrong("--timeout needs a number of seconds, 0.1 at least", optarg);
    default:
        fprintf(stderr, "    see: rondo-ras --help\n"); /* getopt has said why */
        return RAS_USAGE;
    }
}

static int parse(const command_t *command, int argc, char **argv, ras_options_t *options)
{
    static const struct option longs[] = {{"json", no_argument, NULL, 'j'},
                                          {"job", required_argument, NULL, 'J'},
                                          {"dir", required_argument, NULL, 'D'},
                                          {"from", required_argument, NULL, 'F'},
                                          {"format", required_argument, NULL, 'f'},
                                          {"host", required_argument, NULL, 'H'},
                                          {"key", required_argument, NULL, 'K'},
                                          {"tool", required_argument, NULL, 't'},
                                          {"timeout", required_argument, NULL, 'T'},
                                          {"stall", required_argument, NULL, 's'},
                                          {"user", required_argument, NULL, 'U'},
                                          {"all", no_argument, NULL, 'v'},
                                          {0}};
    int bad;

    for (int c; (c = getopt_long(argc, argv, "vn:d:o:", longs, NULL)) >= 0;) {
        switch (c) {
        case 'v':
            options->all = true;
            break;
        case 'j':
            options->json = true;
            break;
        case 'D':
            options->dir = optarg;
            break;
        case 'f':
            options->format = optarg;
            break;
        case 'F':
            options->from = optarg;
            break;
        case 'H':
            options->hosts = optarg;
            break;
        case 'K':
            options->key = optarg;
            break;
        case 'U':
            if (!find_user(optarg, &options->user))
                return wrong("--user needs the name or the number of a user", optarg);
            break;
        case 't':
            options->tool = optarg;
            break;
        case 'o':
            options->out = optarg;
            break;
        default:
            if ((bad = take_number(c, options)) != 0)
                return bad;
        }
    }
    options->args = argv + optind;
    options->nargs = argc - optind;
    if (options->json && command->has_no_json)
        return wrong("list, status, who, monitor and analyse have --json; this has not", command->name);
    if (!options->nargs || !command->run || command->has_args)
        return 0;
    return wrong(number_is(argv[optind], 1, INT32_MAX, &options->job) ? "a job is named by --job"
                                                                      : "there is nothing more to say than the command",
                 argv[optind]);
}

static int no_record(const rd_view_t *view, const ras_options_t *options)
{
    if (view->unreadable)
        fprintf(stderr, "rondo-ras: %d record%s cannot be read: %s\n", view->unreadable,
                view->unreadable == 1 ? "" : "s", view->why);
    if (view->unreadable && !options->job)
        return RAS_NOTHING;
    const char *folder = options->from ? options->from : options->dir;
    DIR *there = folder ? opendir(folder) : NULL;
    const bool lacks = folder && !there && errno != ENOTDIR;
    if (lacks)
        fprintf(stderr, "rondo-ras: %s cannot be read: %s\n", folder, strerror(errno));
    if (there)
        closedir(there);
    if (lacks && options->from)
        return RAS_NOTHING;
    if (options->from)
        fprintf(stderr,
                "rondo-ras: there is no record in %s; a job leaves some there if RONDO_MONITOR_DIR names it. Dumps are "
                "read by convert, which also makes a trace of them (--format chrome), and by analyse\n",
                options->from);
    else if (options->job)
        ras_say_no_job(options->job);
    else
        fprintf(
            stderr,
            "rondo-ras: no process of this user%s on this host has a communicator of rondo, or RONDO_MONITOR is "
            "0 there. Only root sees those of other users, and with --user the group of RONDO_RAS_GROUP; those of a "
            "container are seen inside\n",
            options->user >= 0 ? ", or of that of --user that answers," : "");
    return RAS_NOTHING;
}

static bool has_job(const rd_view_t *view, int job)
{
    for (int i = 0; i < view->nprocesses; i++)
        if (!job || view->processes[i].job == job)
            return true;
    return false;
}

/* What cannot be written is said, unless the command has failed and said so. */
static int end(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    if (status != RAS_NOTHING)
        fprintf(stderr, "rondo-ras: the output could not be written\n");
    return RAS_NOTHING;
}

int main(int argc, char **argv)
{
    ras_options_t options = {
        .dir = getenv("RONDO_MONITOR_DIR"), .key = getenv("RONDO_RAS_KEY"), .stall = -1, .user = -1};
    const command_t *command = NULL;
    rd_view_t view;

    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0 || (i == 1 && strcmp(argv[i], "help") == 0)) {
            fputs(usage, stdout);
            return end(0);
        }
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        printf("rondo-ras %d.%d.%d\n", RONDO_VERSION_MAJOR, RONDO_VERSION_MINOR, RONDO_VERSION_PATCH);
        return end(0);
    }
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            command = &commands[i];
    if (!command)
        return wrong(argc > 1 ? "there is no such command"
                              : "a command is needed: list, status, who, top, dump, trace, metrics, monitor, stacks, "
                                "convert or analyse",
                     argc > 1 ? argv[1] : NULL);
    argv[1] = argv[0]; /* by which getopt's own words begin */
    int bad = parse(command, argc - 1, argv + 1, &options);
    if (bad)
        return bad;
    if (options.dir && !*options.dir)
        options.dir = NULL;
    if (command->run_files)
        return end(command->run_files(&options));
    if (options.hosts && (!command->has_hosts || options.from))
        return wrong("top, monitor, stacks and --from look at this host alone, and not at --host", options.hosts);
    if (!ras_find(&view, &options)) {
        if (!options.hosts) /* which has said why */
            fprintf(stderr, "rondo-ras: no memory\n");
        return RAS_NOTHING;
    }
    options.job = rd_view_job(&view, options.job);
    int status =
        has_job(&view, options.job) || command->waits ? command->run(&view, &options) : no_record(&view, &options);
    rd_view_free(&view);
    return end(status);
}
