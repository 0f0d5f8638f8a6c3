/* librondo_mpi.so: what is preloaded, or linked before the MPI. It has the MPI's names and nothing else.
 *
 * A preloaded library gets into mpirun, shells and Python as well, most of which have no MPI, or open one later without
 * its names being global (mpi4py). So this library refers to nothing of an MPI and does nothing until a call comes,
 * MPI_Init as a rule, or where that is hidden the first collective. By then the process has an MPI: its names are made
 * global, and librondo_mpi_calls.so, which refers to them, is opened. Where that cannot be, everything goes to the MPI,
 * and one sentence says why. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi/entries.h"

#define EXPORT __attribute__((visibility("default")))
#ifdef OPEN_MPI
#define FAMILY "Open MPI"
#else
#define FAMILY "MPICH"
#endif
#define CALLS "librondo_mpi_calls.so"

static _Atomic(const rd_mpi_entries_t *) entries;
static rd_mpi_entries_t next; /* who comes behind */
static void *mpi;             /* the library that has the MPI */

typedef struct {
    char paths[16][1024];
    int n;
} candidates_t;

static int note_candidate(struct dl_phdr_info *info, size_t size, void *data)
{
    candidates_t *c = data;
    const char *path = info->dlpi_name ? info->dlpi_name : "", *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path; /* of the folders any may have "mpi" in it */

    (void)size;
    if (c->n < 16 && strstr(name, "mpi") && !strstr(name, "librondo_mpi"))
        snprintf(c->paths[c->n++], sizeof c->paths[0], "%s", path);
    return 0;
}

/* Returns the library of the process that has an MPI, global or not; NULL: there is none. */
static void *find_mpi(void)
{
    static candidates_t c;
    void *library = NULL;

    dl_iterate_phdr(note_candidate, &c);
    for (int i = 0; i < c.n && !library; i++) {
        library = dlopen(c.paths[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library && !dlsym(library, "PMPI_Comm_rank")) {
            dlclose(library);
            library = NULL;
        }
    }
    return library;
}

/* The next one that has this name in the process's order, or the MPI that was opened without being global. */
static void *behind(const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);

    return symbol || !mpi ? symbol : dlsym(mpi, name);
}

#if defined OPEN_MPI && OMPI_MAJOR_VERSION < 5
#define INIT "MPIX_"
#define INIT_SMALL "mpix_"
#else
#define INIT "MPI_"
#define INIT_SMALL "mpi_"
#endif
#define LOOK_UP(Name, name, s, parameters, arguments)                                                                  \
    next.Name##s = (int(*) parameters)behind("MPI_" #Name #s);                                                         \
    next.I##name##s = (int (*)(RD_MPI_OPEN parameters, MPI_Request *))behind("MPI_I" #name #s);                        \
    next.Name##_init##s = (int (*)(RD_MPI_OPEN parameters, MPI_Info, MPI_Request *))behind(INIT #Name "_init" #s);
/* Where nothing is served, `use mpi_f08` goes on to its own: its ierror may be absent. */
#define F08(name, Name, NAME, parameters, arguments)                                                                   \
    static void (*f08_##name)(RD_MPI_OPEN parameters, P ierror);                                                       \
    static void (*f08_i##name)(RD_MPI_OPEN parameters, P request, P ierror);                                           \
    static void (*f08_##name##_init)(RD_MPI_OPEN parameters, P info, P request, P ierror);
RD_MPI_FORTRAN(F08)
#define LOOK_UP_FORTRAN(name, Name, NAME, parameters, arguments)                                                       \
    next.f_##name = (void (*)(RD_MPI_OPEN parameters, P))behind("mpi_" #name "_");                                     \
    next.f_i##name = (void (*)(RD_MPI_OPEN parameters, P, P))behind("mpi_i" #name "_");                                \
    next.f_##name##_init = (void (*)(RD_MPI_OPEN parameters, P, P, P))behind(INIT_SMALL #name "_init_");               \
    f08_##name = (void (*)(RD_MPI_OPEN parameters, P))behind("mpi_" #name "_f08_");                                    \
    f08_i##name = (void (*)(RD_MPI_OPEN parameters, P, P))behind("mpi_i" #name "_f08_");                               \
    f08_##name##_init = (void (*)(RD_MPI_OPEN parameters, P, P, P))behind(INIT_SMALL #name "_init_f08_");
#define F08_START(Name, name, NAME, n, parameters, arguments)                                                          \
    static void (*f08_##name)(RD_MPI_OPEN parameters, P ierror);
RD_MPI_STARTS(F08_START)
RD_MPI_FREES(F08_START)
RD_MPI_KEPT_FREES(F08_START)
RD_MPI_IDUPS(F08_START)
RD_MPI_REVOKES(F08_START)
#define LOOK_UP_REVOKE(Name, name, NAME, n, parameters, arguments)                                                     \
    next.Name = (int(*) RD_MPI_WORDS_##n)behind("MPIX_" #Name);                                                        \
    next.f_##name = (void (*)(RD_MPI_OPEN parameters, P))behind("mpix_" #name "_");                                    \
    f08_##name = (void (*)(RD_MPI_OPEN parameters, P))behind("mpix_" #name "_f08_");
#define LOOK_UP_START(Name, name, NAME, n, parameters, arguments)                                                      \
    next.Name = (int(*) RD_MPI_WORDS_##n)behind("MPI_" #Name);                                                         \
    next.f_##name = (void (*)(RD_MPI_OPEN parameters, P))behind("mpi_" #name "_");                                     \
    f08_##name = (void (*)(RD_MPI_OPEN parameters, P))behind("mpi_" #name "_f08_");
#define LOOK_UP_WAIT(Name, name, n, n_f08)                                                                             \
    next.Name = (int(*) RD_MPI_WORDS_##n)behind("MPI_" #Name);                                                         \
    next.f08_##name = (void(*) RD_MPI_WORDS_##n_f08)behind("mpi_" #name "_f08_");
static void look_up(void)
{
    RD_MPI_ENTRIES(LOOK_UP)
    RD_MPI_FORTRAN(LOOK_UP_FORTRAN)
    RD_MPI_STARTS(LOOK_UP_START)
    RD_MPI_FREES(LOOK_UP_START)
    RD_MPI_KEPT_FREES(LOOK_UP_START)
    RD_MPI_IDUPS(LOOK_UP_START)
    RD_MPI_REVOKES(LOOK_UP_REVOKE)
    RD_MPI_WAITS(LOOK_UP_WAIT)
}

/* Is what the program finds under this name here? */
static bool is_here(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    Dl_info self, other;

    return !found || !dladdr(found, &other) || !dladdr((void *)&next, &self) || other.dli_fbase == self.dli_fbase;
}

#ifdef OPEN_MPI
#define START_IS_HERE(Name, name, NAME, n, parameters, arguments) &&is_here("MPI_" #Name) && is_here("mpi_" #name "_")
#else
#define START_IS_HERE(Name, name, NAME, n, parameters, arguments) &&is_here("MPI_" #Name)
#endif
#define WAIT_IS_HERE(Name, name, n, n_f08) &&is_here("MPI_" #Name)
static bool requests_are_here(void)
{
    return true RD_MPI_STARTS(START_IS_HERE) RD_MPI_WAITS(WAIT_IS_HERE);
}

static bool frees_are_here(void)
{
    return true RD_MPI_KEPT_FREES(START_IS_HERE);
}

static void refuse(const char *why, const char *what)
{
    fprintf(stderr, "rondo: %s%s: it serves nothing in this process, all calls go to the MPI\n", why, what);
}

/* The standard ABI of MPI 5, which a program may be compiled for instead of its MPI's own, has other handles. */
static int has_standard_abi(void)
{
    int (*version)(int *, int *) = (int (*)(int *, int *))behind("PMPI_Abi_get_version");
    int major = -1, minor = -1;

    return version && version(&major, &minor) == 0 && major > 0;
}

static int right_mpi(void)
{
    int (*version)(char *, int *) = (int (*)(char *, int *))behind("PMPI_Get_library_version");
    char text[MPI_MAX_LIBRARY_VERSION_STRING + 8192] = "";
    int length = 0;

    if (has_standard_abi()) {
        refuse("librondo_mpi.so was built for the handles of " FAMILY ", but the program was for MPI's standard ABI",
               "");
        return 0;
    }
    if (version && version(text, &length) == 0 && strncmp(text, FAMILY, strlen(FAMILY)) == 0)
        return 1;
    text[strcspn(text, "\n")] = '\0';
    refuse("librondo_mpi.so was built for " FAMILY ", but the program runs with ",
           text[0] ? text : "an MPI that does not say its name");
    return 0;
}

/* Beside this library, or in the folder rondo/ there. */
static void *open_calls(void)
{
    char path[4096];
    Dl_info self;

    if (!dladdr((void *)&next, &self) || !strrchr(self.dli_fname, '/'))
        return dlopen(CALLS, RTLD_NOW | RTLD_LOCAL);
    for (int deeper = 0; deeper < 2; deeper++) {
        int length = (int)(strrchr(self.dli_fname, '/') - self.dli_fname);
        snprintf(path, sizeof path, "%.*s/%s" CALLS, length, self.dli_fname, deeper ? "rondo/" : "");
        if (access(path, F_OK) == 0)
            break;
    }
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static const rd_mpi_entries_t *serve(void)
{
    rd_mpi_table_fn table;
    const rd_mpi_entries_t *served;
    void *calls;

    if (!right_mpi())
        return &next;
    calls = open_calls();
    if (!calls) {
        refuse("", dlerror());
        return &next;
    }
    table = (rd_mpi_table_fn)dlsym(calls, RD_MPI_TABLE);
    served = table ? table(&next) : NULL;
    return served ? served : &next;
}

static void start(void)
{
    int error = errno;
    Dl_info where;
    void *known;

    mpi = find_mpi();
    known = behind("PMPI_Comm_rank");
    if (known && dladdr(known, &where)) /* its names become global, for librondo_mpi_calls.so */
        mpi = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
    look_up();
    next.requests_come_by = requests_are_here();
    next.frees_come_by = frees_are_here();
    if (!next.Allreduce) {
        fprintf(stderr, "rondo: librondo_mpi.so was called, but there is no MPI in this process: link it before a "
                        "shared MPI, or preload it (a static MPI is not supported)\n");
        abort();
    }
    errno = error;
}

static void start_serving(void)
{
    int error = errno;

    atomic_store_explicit(&entries, serve(), memory_order_release);
    errno = error;
}

/* A session of MPI 4 may have communicators without MPI_Init, or before it: until it is called, all is the MPI's. */
static int has_begun(void)
{
    int (*initialized)(int *) = (int (*)(int *))behind("PMPI_Initialized");
    int begun = 1;

    return !initialized || initialized(&begun) != 0 || begun;
}

static pthread_once_t looked = PTHREAD_ONCE_INIT;

static const rd_mpi_entries_t *first_call(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&looked, start);
    if (!has_begun())
        return &next;
    pthread_once(&once, start_serving);
    return atomic_load_explicit(&entries, memory_order_acquire);
}

static inline const rd_mpi_entries_t *table(void)
{
    const rd_mpi_entries_t *known = atomic_load_explicit(&entries, memory_order_acquire);

    return __builtin_expect(known != NULL, 1) ? known : first_call();
}

static void begin(void)
{
    const rd_mpi_entries_t *to = table();

    if (to->begin)
        to->begin();
}

/* For calls that are nothing to rondo as long as nothing is served. */
static inline const rd_mpi_entries_t *table_if_serving(void)
{
    const rd_mpi_entries_t *known = atomic_load_explicit(&entries, memory_order_acquire);

    if (!known)
        pthread_once(&looked, start);
    return known ? known : &next;
}

/* A process may have another MPI than the one that this was built for, whose handles are pointers where this one's are
 * numbers, and then the arguments must get there as they came: each is a word, or a part of one, for both. So these
 * entries have words for parameters, and get MPI's names by their assembler names. */
#define WORDS_1 RD_MPI_WORDS_1
#define WORDS_2 RD_MPI_WORDS_2
#define WORDS_3 RD_MPI_WORDS_3
#define WORDS_4 RD_MPI_WORDS_4
#define WORDS_5 RD_MPI_WORDS_5
#define WORDS_6 RD_MPI_WORDS_6
#define WORDS_7 (W a, W b, W c, W d, W e, W f, W g)
#define WORDS_8 (W a, W b, W c, W d, W e, W f, W g, W h)
#define WORDS_9 (W a, W b, W c, W d, W e, W f, W g, W h, W i)
#define WORDS_10 (W a, W b, W c, W d, W e, W f, W g, W h, W i, W j)
#define WORDS_11 (W a, W b, W c, W d, W e, W f, W g, W h, W i, W j, W k)
#define GIVEN_1 RD_MPI_GIVEN_1
#define GIVEN_2 RD_MPI_GIVEN_2
#define GIVEN_3 RD_MPI_GIVEN_3
#define GIVEN_4 RD_MPI_GIVEN_4
#define GIVEN_5 RD_MPI_GIVEN_5
#define GIVEN_6 RD_MPI_GIVEN_6
#define GIVEN_7 (a, b, c, d, e, f, g)
#define GIVEN_8 (a, b, c, d, e, f, g, h)
#define GIVEN_9 (a, b, c, d, e, f, g, h, i)
#define GIVEN_10 (a, b, c, d, e, f, g, h, i, j)
#define GIVEN_11 (a, b, c, d, e, f, g, h, i, j, k)
#define TABLE table
#define ENTRY(name, n) ENTRY_AS("MPI_", name, n)
#define ENTRY_AS(prefix, name, n)                                                                                      \
    EXPORT int rd_mpi_entry_##name WORDS_##n __asm__(prefix #name);                                                    \
    int rd_mpi_entry_##name WORDS_##n                                                                                  \
    {                                                                                                                  \
        return ((int(*) WORDS_##n)(void *)TABLE()->name)GIVEN_##n;                                                     \
    }
#if RD_MPI_HAS_INIT
#define INIT_ENTRY(name, n) ENTRY_AS(INIT, name, n)
#else
#define INIT_ENTRY(name, n)
#endif
#define THREE(Name, name, s, n, n_nonblocking, n_persistent)                                                           \
    ENTRY(Name##s, n)                                                                                                  \
    ENTRY(I##name##s, n_nonblocking)                                                                                   \
    INIT_ENTRY(Name##_init##s, n_persistent)
#define COUNTED(s)                                                                                                     \
    THREE(Bcast, bcast, s, 5, 6, 7)                                                                                    \
    THREE(Reduce, reduce, s, 7, 8, 9)                                                                                  \
    THREE(Allreduce, allreduce, s, 6, 7, 8)                                                                            \
    THREE(Reduce_scatter_block, reduce_scatter_block, s, 6, 7, 8)                                                      \
    THREE(Reduce_scatter, reduce_scatter, s, 6, 7, 8)                                                                  \
    THREE(Scan, scan, s, 6, 7, 8)                                                                                      \
    THREE(Exscan, exscan, s, 6, 7, 8)                                                                                  \
    THREE(Gather, gather, s, 8, 9, 10)                                                                                 \
    THREE(Gatherv, gatherv, s, 9, 10, 11)                                                                              \
    THREE(Scatter, scatter, s, 8, 9, 10)                                                                               \
    THREE(Scatterv, scatterv, s, 9, 10, 11)                                                                            \
    THREE(Allgather, allgather, s, 7, 8, 9)                                                                            \
    THREE(Allgatherv, allgatherv, s, 8, 9, 10)                                                                         \
    THREE(Alltoall, alltoall, s, 7, 8, 9)                                                                              \
    THREE(Alltoallv, alltoallv, s, 9, 10, 11)
THREE(Barrier, barrier, , 1, 2, 3)
COUNTED()
#if MPI_VERSION >= 4
COUNTED(_c)
#endif

/* By its name in the table: one spelling of a call. Of `use mpi_f08` there is one. */
#define SPELLING(field, parameters, arguments, spelling)                                                               \
    EXPORT void spelling parameters;                                                                                   \
    EXPORT void spelling parameters                                                                                    \
    {                                                                                                                  \
        TABLE()->f_##field arguments;                                                                                  \
    }
#define SPELLING_F08(field, parameters, arguments, spelling)                                                           \
    EXPORT void spelling parameters;                                                                                   \
    EXPORT void spelling parameters                                                                                    \
    {                                                                                                                  \
        const rd_mpi_entries_t *to = TABLE();                                                                          \
                                                                                                                       \
        (to == &next && f08_##field ? f08_##field : to->f_##field) arguments;                                          \
    }
#ifdef OPEN_MPI
#define SPELLINGS_AS(name, NAME, field, parameters, arguments)                                                         \
    SPELLING(field, parameters, arguments, name)                                                                       \
    SPELLING(field, parameters, arguments, name##_)                                                                    \
    SPELLING(field, parameters, arguments, name##__)                                                                   \
    SPELLING(field, parameters, arguments, NAME)                                                                       \
    SPELLING_F08(field, parameters, arguments, name##_f08_)
#else
#define SPELLINGS_AS(name, NAME, field, parameters, arguments) SPELLING_F08(field, parameters, arguments, name##_f08_)
#endif
#define SPELLINGS(field, FIELD, parameters, arguments)                                                                 \
    SPELLINGS_AS(mpi_##field, MPI_##FIELD, field, parameters, arguments)
#if !RD_MPI_HAS_INIT
#define INIT_SPELLINGS(field, FIELD, parameters, arguments)
#elif defined OPEN_MPI && OMPI_MAJOR_VERSION < 5
#define INIT_SPELLINGS(field, FIELD, parameters, arguments)                                                            \
    SPELLINGS_AS(mpix_##field, MPIX_##FIELD, field, parameters, arguments)
#else
#define INIT_SPELLINGS(field, FIELD, parameters, arguments) SPELLINGS(field, FIELD, parameters, arguments)
#endif
#define FORTRAN_ENTRY(name, Name, NAME, parameters, arguments)                                                         \
    SPELLINGS(name, NAME, (RD_MPI_OPEN parameters, P ierror), (RD_MPI_OPEN arguments, ierror))                         \
    INIT_SPELLINGS(name##_init, NAME##_INIT, (RD_MPI_OPEN parameters, P info, P request, P ierror),                    \
                   (RD_MPI_OPEN arguments, info, request, ierror))                                                     \
    SPELLINGS(i##name, I##NAME, (RD_MPI_OPEN parameters, P request, P ierror), (RD_MPI_OPEN arguments, request, ierror))
RD_MPI_FORTRAN(FORTRAN_ENTRY)

#define START_ENTRY(Name, name, NAME, n, parameters, arguments)                                                        \
    ENTRY(Name, n)                                                                                                     \
    SPELLINGS(name, NAME, (RD_MPI_OPEN parameters, P ierror), (RD_MPI_OPEN arguments, ierror))
RD_MPI_STARTS(START_ENTRY)

#define WAIT_ENTRY(Name, name, n, n_f08)                                                                               \
    ENTRY(Name, n)                                                                                                     \
    EXPORT void mpi_##name##_f08_ WORDS_##n_f08;                                                                       \
    EXPORT void mpi_##name##_f08_ WORDS_##n_f08                                                                        \
    {                                                                                                                  \
        table()->f08_##name GIVEN_##n_f08;                                                                             \
    }
RD_MPI_WAITS(WAIT_ENTRY)

#undef TABLE
#define TABLE table_if_serving
RD_MPI_FREES(START_ENTRY)
RD_MPI_KEPT_FREES(START_ENTRY)
RD_MPI_IDUPS(START_ENTRY)
#ifdef OPEN_MPI
#define REVOKE_ENTRY(Name, name, NAME, n, parameters, arguments)                                                       \
    ENTRY_AS("MPIX_", Name, n)                                                                                         \
    SPELLINGS_AS(mpix_##name, MPIX_##NAME, name, (RD_MPI_OPEN parameters, P ierror), (RD_MPI_OPEN arguments, ierror))
#else
#define REVOKE_ENTRY(Name, name, NAME, n, parameters, arguments) ENTRY_AS("MPIX_", Name, n)
#endif
RD_MPI_REVOKES(REVOKE_ENTRY)

/* Serving begins in MPI_Init, because it makes a communicator of this process alone, which in Open MPI may not be done
 * while others are being made behind their calls (MPI_Comm_idup): 4.1.4 then hangs. */
#define INIT_ENTRY_C(Name, n)                                                                                          \
    EXPORT int rd_mpi_entry_##Name WORDS_##n __asm__("MPI_" #Name);                                                    \
    int rd_mpi_entry_##Name WORDS_##n                                                                                  \
    {                                                                                                                  \
        int result;                                                                                                    \
                                                                                                                       \
        pthread_once(&looked, start);                                                                                  \
        result = ((int(*) WORDS_##n)behind("MPI_" #Name))GIVEN_##n;                                                    \
        begin();                                                                                                       \
        return result;                                                                                                 \
    }
INIT_ENTRY_C(Init, 2)
INIT_ENTRY_C(Init_thread, 4)
#define INIT_SPELLING(spelling, parameters, arguments)                                                                 \
    EXPORT void spelling parameters;                                                                                   \
    EXPORT void spelling parameters                                                                                    \
    {                                                                                                                  \
        pthread_once(&looked, start);                                                                                  \
        ((void(*) parameters)behind(#spelling)) arguments;                                                             \
        begin();                                                                                                       \
    }
#ifdef OPEN_MPI
#define INIT_SPELLINGS_AS(name, NAME, parameters, arguments)                                                           \
    INIT_SPELLING(name, parameters, arguments)                                                                         \
    INIT_SPELLING(name##_, parameters, arguments)                                                                      \
    INIT_SPELLING(name##__, parameters, arguments)                                                                     \
    INIT_SPELLING(NAME, parameters, arguments)                                                                         \
    INIT_SPELLING(name##_f08_, parameters, arguments)
#else
#define INIT_SPELLINGS_AS(name, NAME, parameters, arguments) INIT_SPELLING(name##_f08_, parameters, arguments)
#endif
INIT_SPELLINGS_AS(mpi_init, MPI_INIT, (P ierror), (ierror))
INIT_SPELLINGS_AS(mpi_init_thread, MPI_INIT_THREAD, (P required, P provided, P ierror), (required, provided, ierror))
