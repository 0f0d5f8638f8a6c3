/* The record of this process, written and read back: runs of equal calls, what they come to, a ring that goes round,
 * threads that share it, communicators that follow each other; that only this process writes it, also after a fork; the
 * file of RONDO_MONITOR_DIR; and that without a record all calls do nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/process.h"
#include "monitor/read.h"
#include "monitor/seat.h"
#include "util/check.h"

#define EVENTS 256
#define THREADS 4
#define CALLS 20000

static rd_env_t env = {.monitor = 1, .monitor_events = EVENTS};
static rd_reader_t reader;

static void begin(rd_seat_t *seat, uint64_t id, int rank)
{
    const rd_monitor_comm_args_t args = {
        .id = id, .name = "test", .rank = rank, .size = 8, .nodes = 1, .locals = 8, .device = -1};

    rd_seat_init(seat);
    rd_seat_take(seat, &args);
}

/* What a call says follows from its number, so that a reader can tell a torn one. */
static rd_monitor_call_t call_of(uint64_t number)
{
    return (rd_monitor_call_t){
        .count = number * 3, .bytes = number * 24, .root = (int32_t)(number % 1000), .kind = (uint8_t)(number % 9)};
}

static int is_whole(const rd_monitor_event_t *e)
{
    uint64_t number = e->count / 3;

    return e->count == number * 3 && e->bytes == number * 24 && e->root == (int32_t)(number % 1000) &&
           e->kind == number % 9;
}

static void call(rd_seat_t *seat, rd_track_t track, uint64_t what)
{
    const rd_monitor_call_t c = call_of(what);
    uint64_t entry = rd_monitor_begin(seat, track, &c);

    rd_monitor_end(seat, track, entry, 0);
}

static void repeat(rd_seat_t *seat)
{
    rd_monitor_repeat_begin(seat);
    rd_monitor_repeat_end(seat);
}

static void runs(void)
{
    rd_seat_t seat;
    rd_monitor_comm_t comm;
    rd_monitor_event_t e;

    begin(&seat, 11, 3);
    CHECK(rd_reader_comms(&reader) == 1 && rd_reader_comm(&reader, 0, &comm), "one communicator");
    CHECK(comm.id == 11 && comm.rank == 3 && comm.size == 8 && strcmp(comm.name, "test") == 0, "what it is");
    CHECK(!rd_reader_last(&reader, &comm, RD_TRACK_COLLECTIVE, &e), "no call yet");
    for (int i = 0; i < 3; i++)
        call(&seat, RD_TRACK_COLLECTIVE, 7);
    for (int i = 0; i < 5; i++)
        repeat(&seat);
    call(&seat, RD_TRACK_SEND, 1);
    call(&seat, RD_TRACK_RECV, 1);
    call(&seat, RD_TRACK_SEND, 1);
    CHECK(rd_reader_events(&reader) == 3, "%llu events of 11 calls", (unsigned long long)rd_reader_events(&reader));
    CHECK(rd_reader_comm(&reader, 0, &comm) && comm.calls[0].begun == 8 && comm.calls[0].ended == 8, "8 collectives");
    CHECK(comm.calls[RD_TRACK_SEND].begun == 2 && comm.calls[RD_TRACK_RECV].ended == 1, "messages");
    CHECK(rd_reader_last(&reader, &comm, RD_TRACK_COLLECTIVE, &e) && e.number == 1 && e.count == 21 &&
              e.ended >= e.begun,
          "the run's event");
    call(&seat, RD_TRACK_COLLECTIVE, 9); /* ends the run */
    CHECK(rd_reader_event(&reader, 0, &e) && e.repeats == 7, "repeated %llu times", (unsigned long long)e.repeats);
    CHECK(rd_reader_comm(&reader, 0, &comm) && comm.calls[0].bytes == 8 * 7 * 24, "bytes of the run");
    CHECK(rd_reader_last(&reader, &comm, RD_TRACK_COLLECTIVE, &e) && e.number == 9 && e.count == 27,
          "the next call's event");
    const rd_monitor_call_t open = call_of(10);
    rd_monitor_begin(&seat, RD_TRACK_COLLECTIVE, &open);
    CHECK(rd_reader_comm(&reader, 0, &comm) && comm.calls[0].begun == 10 && comm.calls[0].ended == 9, "inside");
    CHECK(rd_reader_last(&reader, &comm, RD_TRACK_COLLECTIVE, &e) && e.number == 10 && e.ended == 0, "not ended");
    double ago = rd_reader_ago(&reader, e.begun);
    CHECK(ago > 0 && ago < 60 && rd_reader_ago(&reader, e.begun + (e.begun >> 1)) == 0, "it began %g s ago", ago);
    rd_monitor_wait(&seat, 5, 100, 200, 2, 3);
    CHECK(rd_reader_comm(&reader, 0, &comm) && comm.waits_for == 5 && comm.since_ms == 100 && comm.waits_in == 13 &&
              comm.step == 2,
          "waits");
    const rd_seat_failure_t how = {.result = 7, .failed_rank = 1, .heard = true, .text = "rank 1 \033 has left"};
    rd_monitor_failure_t failure;
    CHECK(rd_seat_failed(&seat, &how) && !rd_seat_failed(&seat, &how), "it fails once");
    CHECK(rd_reader_comm(&reader, 0, &comm) && comm.state == RD_MONITOR_FAILED && comm.result == 7, "failed");
    CHECK(rd_reader_failure(&reader, comm.id, comm.rank, &failure) && failure.failed_rank == 1 && failure.heard &&
              strcmp(failure.text, "rank 1 ? has left") == 0 && failure.failed_ns,
          "the sentence of the failure");
    CHECK(!rd_reader_failure(&reader, comm.id, comm.rank + 1, &failure), "a sentence of another rank");
    rd_seat_leave(&seat);
    CHECK(rd_reader_comm(&reader, 0, &comm) && comm.state == RD_MONITOR_ENDED && comm.ended_ns, "ended");
}

static int is_new(rd_seat_t *seat, const rd_monitor_call_t *c)
{
    return rd_monitor_begin(seat, RD_TRACK_SEND, c) != 0;
}

/* A call repeats the last one of its track if it is like it in every field, and only then. */
static void alike(void)
{
    const rd_monitor_call_t base = {.count = 8, .bytes = 8, .tag = 3, .root = 1, .kind = RD_MONITOR_PUT, .stack = 4};
    rd_monitor_call_t c[9];
    rd_seat_t seat;

    for (int i = 0; i < 9; i++)
        c[i] = base;
    c[0].count++, c[1].bytes++, c[2].tag++, c[3].root++, c[4].kind++;
    c[5].type++, c[6].op++, c[7].flags++, c[8].stack++;
    begin(&seat, 12, 0);
    for (int i = 0; i < 9; i++) {
        CHECK(is_new(&seat, &base) && !is_new(&seat, &base), "field %d: the first one", i);
        CHECK(is_new(&seat, &c[i]) && !is_new(&seat, &c[i]), "field %d is not looked at", i);
    }
    const rd_monitor_call_t put = {.count = 8, .bytes = 8, .root = 1, .kind = RD_MONITOR_PUT, .type = RD_MONITOR_BYTE};
    CHECK(is_new(&seat, &put), "a put");
    const rd_monitor_call_t message = rd_monitor_message(1, 8, 1, 0, 0);
    CHECK(rd_monitor_begin_message(&seat, RD_TRACK_SEND, &message), "a send is taken for the put before it");
    CHECK(!rd_monitor_begin_message(&seat, RD_TRACK_SEND, &message), "a send repeats the one before it");
    rd_seat_leave(&seat);
}

/* More communicators than the table has follow each other; of more at once those beyond it are not seen. */
static void many(void)
{
    static rd_seat_t seats[RD_MONITOR_COMMS + 1], one;
    rd_monitor_comm_t comm;

    for (int i = 0; i < 3 * RD_MONITOR_COMMS; i++) {
        begin(&one, (uint64_t)i, 0);
        CHECK(one.record, "entry %d", i);
        call(&one, RD_TRACK_COLLECTIVE, 1);
        rd_seat_leave(&one);
    }
    for (int i = 0; i <= RD_MONITOR_COMMS; i++)
        begin(&seats[i], 5000 + (uint64_t)i, 0);
    CHECK(rd_reader_comms(&reader) == RD_MONITOR_COMMS && !seats[RD_MONITOR_COMMS].record, "the table is full");
    call(&seats[RD_MONITOR_COMMS], RD_TRACK_COLLECTIVE, 1);
    for (int i = 0; i < RD_MONITOR_COMMS; i++)
        CHECK(rd_reader_comm(&reader, i, &comm) && comm.id >= 5000 && comm.calls[0].begun == 0, "entry %d is used anew",
              i);
    for (int i = 0; i <= RD_MONITOR_COMMS; i++)
        rd_seat_leave(&seats[i]);
}

static void ring(void)
{
    rd_seat_t seat;
    rd_monitor_event_t e;
    uint64_t first = rd_reader_events(&reader);

    begin(&seat, 12, 0);
    for (uint64_t i = 1; i <= 3 * EVENTS; i++)
        call(&seat, RD_TRACK_COLLECTIVE, i);
    uint64_t next = rd_reader_events(&reader);
    CHECK(next == first + 3 * EVENTS, "events begun");
    CHECK(!rd_reader_event(&reader, next - EVENTS - 1, &e) && !rd_reader_event(&reader, next, &e),
          "overwritten, and not yet");
    for (uint64_t i = next - EVENTS; i < next; i++)
        CHECK(rd_reader_event(&reader, i, &e) && e.count == 3 * (i - first + 1) && is_whole(&e), "event %llu",
              (unsigned long long)i);
    rd_seat_leave(&seat);
}

static _Atomic int writing;

static void *write_all(void *arg)
{
    rd_seat_t seat;
    uint64_t seed = (uint64_t)(uintptr_t)arg;

    begin(&seat, 100 + seed, (int)seed);
    for (uint64_t i = 1; i <= CALLS; i++)
        call(&seat, RD_TRACK_COLLECTIVE, i * 7 + seed);
    rd_seat_leave(&seat);
    writing--;
    return NULL;
}

/* Ranks that are threads write at full speed into a ring that goes round every moment, and what is read is whole. */
static void against_writers(void)
{
    pthread_t threads[THREADS];
    rd_monitor_event_t e;
    rd_monitor_comm_t comm;
    uint64_t read = 0, at = 0;

    writing = THREADS;
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, write_all, (void *)(i + 1));
    while (writing) {
        uint64_t next = rd_reader_events(&reader);
        at = at + 1 < next && next - at < EVENTS ? at + 1 : next > EVENTS ? next - EVENTS / 2 : 0;
        if (rd_reader_event(&reader, at, &e)) {
            CHECK(is_whole(&e), "torn: count %llu bytes %llu", (unsigned long long)e.count,
                  (unsigned long long)e.bytes);
            CHECK(!e.ended || e.ended >= e.begun, "ended before it began");
            read++;
        }
        if (rd_reader_comm(&reader, (int)(at % RD_MONITOR_COMMS), &comm))
            CHECK(comm.size == 8 && strcmp(comm.name, "test") == 0, "a torn communicator");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%llu events read against %d writers\n", (unsigned long long)read, THREADS);
    CHECK(read > 0, "nothing was read");
}

#define ROUNDS 300000

static void *call_at_full_speed(void *arg)
{
    for (uint64_t i = 1; i <= ROUNDS; i++)
        call(arg, RD_TRACK_COLLECTIVE, i);
    writing--;
    return NULL;
}

/* Each call differs from the one before it, so a board that is read meanwhile must fit the event that it names. */
static void against_calls(void)
{
    rd_seat_t seat;
    pthread_t thread;
    rd_monitor_event_t e;
    rd_monitor_comm_t comm;
    uint64_t read = 0, before = 0;

    begin(&seat, 14, 2);
    int entry = 0;
    while (entry < rd_reader_comms(&reader) && !(rd_reader_comm(&reader, entry, &comm) && comm.id == 14))
        entry++;
    writing = 1;
    pthread_create(&thread, NULL, call_at_full_speed, &seat);
    while (writing && rd_reader_comm(&reader, entry, &comm)) {
        const rd_monitor_calls_t *c = &comm.calls[RD_TRACK_COLLECTIVE];
        CHECK(c->ended <= c->begun, "more calls ended than began");
        if (!rd_reader_last(&reader, &comm, RD_TRACK_COLLECTIVE, &e))
            continue;
        CHECK(e.number == c->begun && c->bytes == 12 * e.number * (e.number - 1),
              "call %llu, of %llu: %llu bytes before it", (unsigned long long)e.number, (unsigned long long)c->begun,
              (unsigned long long)c->bytes);
        CHECK(c->begun >= before, "fewer calls than before");
        before = c->begun;
        read++;
    }
    pthread_join(thread, NULL);
    printf("%llu boards read against calls\n", (unsigned long long)read);
    CHECK(read > 0, "no board was read");
    rd_seat_leave(&seat);
    CHECK(rd_reader_comm(&reader, entry, &comm) && comm.calls[0].bytes == UINT64_C(12) * ROUNDS * (ROUNDS - 1),
          "the bytes of the last call are counted twice");
}

/* What a child of a fork writes is not seen, and what was passed on cannot be written. */
static void only_writer(void)
{
    rd_seat_t seat;
    rd_monitor_comm_t comm;
    int status, fd = dup(rd_record_fd());

    begin(&seat, 13, 1);
    call(&seat, RD_TRACK_COLLECTIVE, 1);
    pid_t child = fork();
    if (child == 0) {
        repeat(&seat);
        call(&seat, RD_TRACK_COLLECTIVE, 2);
        int closed = rd_record_fd() < 0, joined = rd_record_join(&env, NULL); /* its own */
        int other = rd_record_fd();
        rd_record_leave();
        _exit(closed && joined && other >= 3 && fcntl(other, F_GETFD) < 0 ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the child ended with 0x%x", status);
    int seen = 0;
    for (int k = 0; k < rd_reader_comms(&reader); k++)
        seen += rd_reader_comm(&reader, k, &comm) && comm.id == 13 && comm.calls[0].begun == 1;
    CHECK(seen == 1, "the child's calls are seen");
    CHECK(write(fd, "x", 1) < 0, "it could be written");
    CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED, "it could be mapped for writing");
    CHECK(ftruncate(fd, 0) != 0, "it could be cut short");
    close(fd);
    rd_seat_leave(&seat);
}

static bool is_in_memory(void)
{
    struct stat st;

    return rd_record_fd() >= 3 && fstat(rd_record_fd(), &st) == 0 && st.st_nlink == 0;
}

static void in_a_folder(void)
{
    char dir[] = "/tmp/rondo-record-XXXXXX", host[64] = "", path[256];
    rd_env_t there = env;
    rd_reader_t file;
    struct stat st;

    if (!mkdtemp(dir))
        return;
    gethostname(host, sizeof host - 1);
    snprintf(path, sizeof path, "%s/%s.%d.rondo-record", dir, host, (int)getpid());
    snprintf(there.monitor_dir, sizeof there.monitor_dir, "%s", dir);
    CHECK(rd_record_join(&there, NULL), "no record in a folder");
    CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600, "the file and its mode");
    CHECK(rd_reader_open(&file, rd_record_fd()) == NULL && file.head.pid == getpid(), "it cannot be read");
    CHECK(write(rd_record_fd(), "x", 1) < 0, "it could be written");
    rd_reader_close(&file);
    rd_record_leave();
    CHECK(stat(path, &st) != 0 && errno == ENOENT, "the file is still there");
    CHECK(symlink("/tmp/nowhere", path) == 0 && rd_record_join(&there, NULL), "no record in memory instead");
    CHECK(stat(path, &st) != 0 && errno == ENOENT, "it followed a link");
    CHECK(is_in_memory(), "the record is not where nobody else is");
    rd_record_leave();
    CHECK(lstat(path, &st) == 0, "it removed what was not its own");
    unlink(path);
    chmod(dir, 0755);
    CHECK(rd_record_join(&there, NULL) && is_in_memory(), "no record in memory where others may read the folder");
    CHECK(stat(path, &st) != 0, "others may read the folder");
    rd_record_leave();
    CHECK(rmdir(dir) == 0, "there is something left");
    CHECK(rd_record_join(&there, NULL) && is_in_memory(), "no record in memory where there is no folder");
    rd_record_leave();
}

static void without(void)
{
    rd_env_t off = env;
    rd_seat_t seat;

    off.monitor = 0;
    CHECK(!rd_record_join(&off, NULL) && rd_record_fd() < 0, "a record though RONDO_MONITOR=0");
    begin(&seat, 1, 0);
    CHECK(seat.board == &seat.own, "it has an entry");
    call(&seat, RD_TRACK_SEND, 1);
    repeat(&seat);
    rd_monitor_wait(&seat, 1, 1, 1, 1, 1);
    CHECK(!rd_seat_failed(&seat, &(rd_seat_failure_t){.result = 1, .text = ""}), "somebody sees it");
    rd_seat_leave(&seat);
}

/* Where a limit forbids it, the log says so, once. */
static void forbidden(void)
{
    const struct rlimit limit = {1 << 16, 1 << 16};
    char text[2048] = "";
    int out[2], status = 0;

    CHECK(pipe(out) == 0, "no pipe");
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        dup2(out[1], STDERR_FILENO);
        _exit(setrlimit(RLIMIT_FSIZE, &limit) != 0 || rd_record_join(&env, NULL) || rd_record_join(&env, NULL));
    }
    close(out[1]);
    for (size_t n = 0, more; (more = (size_t)read(out[0], text + n, sizeof text - 1 - n)) && more < sizeof text;)
        n += more;
    close(out[0]);
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the child: 0x%x", status);
    const char *at = strstr(text, "there is no record of this process");
    CHECK(at && strstr(at, "(ulimit -f)") && !strstr(at + 1, "there is no record"), "the log: '%s'", text);
}

int main(void)
{
    without();
    forbidden();
    CHECK(rd_record_join(&env, NULL) && rd_record_fd() >= 3, "no record");
    CHECK(fcntl(rd_record_fd(), F_GETFD) == FD_CLOEXEC, "not close-on-exec");
    const char *why = rd_reader_open(&reader, rd_record_fd());
    CHECK(!why, "%s", why ? why : "");
    if (why)
        return 1;
    CHECK(reader.head.pid == getpid() && reader.head.nevents == EVENTS && reader.head.started, "the head");
    runs();
    ring();
    against_writers();
    against_calls();
    many();
    alike();
    only_writer();
    rd_record_leave();
    CHECK(rd_record_fd() < 0, "it is still there");
    in_a_folder();
    printf("%d failures\n", failures);
    return failures != 0;
}
