/* The corners of communicators, which come and go, have attributes, and are of many kinds: what must hold with
 * librondo_mpi.so as without, as in corners.c.
 *
 *   mpirun -n N communicators NAME...   (2 to 64 ranks)
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "corner.h"

static int copied, deleted;
static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)key, (void)extra;
    copied++;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}
static int delete (MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

/* 14: the user's attributes are copied as often as without. */
static void attributes(void)
{
    int key, found, *value;
    MPI_Comm first, second;

    MPI_Comm_create_keyval(copy, delete, &key, NULL);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &first); /* a group that rondo does not have yet */
    MPI_Comm_set_attr(first, key, &failures);
    warm(first);
    CHECK(copied == 0, "%d copies before there is a duplicate", copied);
    MPI_Comm_dup(first, &second);
    CHECK(copied == 1, "%d copies", copied);
    warm(second);
    MPI_Comm_get_attr(second, key, &value, &found);
    CHECK(found && value == &failures, "the attribute of the duplicate");
    MPI_Comm_free(&first);
    CHECK(sum_of(1, second) == nranks, "a sum after the first was freed");
    MPI_Comm_free(&second);
    CHECK(copied == 1 && deleted == 2, "%d copies, %d deleted", copied, deleted);
    MPI_Comm_free_keyval(&key);
}

static int sum_as_deleted(MPI_Comm comm, int key, void *value, void *extra)
{
    int size;

    (void)key, (void)value, (void)extra;
    PMPI_Comm_size(comm, &size);
    deleted++;
    for (int i = 0; i < 3; i++)
        CHECK(sum_of(1, comm) == size, "the sum of %d in a delete callback", size);
    return MPI_SUCCESS;
}

/* Collectives in a delete callback of the communicator that is freed; the callback comes after rondo's own, for its
 * attribute was set before, or there is none yet. Handles come back for other groups. */
static void freeing(void)
{
    int key;

    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, sum_as_deleted, &key, NULL);
    for (int i = 0; i < 40; i++) {
        MPI_Comm comm;
        int members;

        if (i % 2)
            MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &comm);
        else
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_size(comm, &members);
        MPI_Comm_set_attr(comm, key, NULL);
        for (int k = 0; k < MANY && i / 2 % 2; k++)
            CHECK(sum_of(1, comm) == members, "the sum of %d", members);
        if (i % 3)
            MPI_Comm_free(&comm);
        else
            MPI_Comm_disconnect(&comm);
    }
    CHECK(deleted >= 20, "%d deleted", deleted);
    MPI_Comm_free_keyval(&key);
}

/* The same where one rank alone has called anything on it, wrongly. The callbacks come in either order. */
static void freeing_alone(void)
{
    int keys[2], before = deleted, value = 1, sum;
    MPI_Comm comm;

    CHECK(sum_of(1, MPI_COMM_WORLD) == nranks, "a sum, after which duplicates of the world are served");
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < 2; i++) {
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, sum_as_deleted, &keys[i], NULL);
        MPI_Comm_set_attr(comm, keys[i], NULL);
        if (i == 0 && rank == 0)
            MPI_Allreduce(&value, &sum, -1, MPI_INT, MPI_SUM, comm);
    }
    MPI_Comm_free(&comm);
    CHECK(deleted == before + 2, "%d deleted", deleted - before);
    MPI_Comm_free_keyval(&keys[0]);
    MPI_Comm_free_keyval(&keys[1]);
}

static int entries_of(const char *path)
{
    DIR *d = opendir(path);
    int n = 0;
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/* 15, 16: made, used and freed, also while others are still in the last operation. */
static void lifetimes(void)
{
    int files = 0, threads = 0;

    for (int i = 0; i < 40; i++) {
        MPI_Comm comm;
        int value = i;
        if (i % 4)
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        else
            MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
        for (int k = 0; k < (i % 4 ? 3 : MANY); k++)
            CHECK(sum_of(1, comm) == nranks, "the sum");
        if (rank == i % nranks)
            usleep(2000);
        MPI_Bcast(&value, 1, MPI_INT, 0, comm);
        MPI_Comm_free(&comm);
        if (i == 19) {
            MPI_Barrier(MPI_COMM_WORLD);
            files = entries_of("/proc/self/fd");
            threads = entries_of("/proc/self/task");
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(50000);
    CHECK(entries_of("/proc/self/fd") <= files + 2, "%d descriptors, %d after 20", entries_of("/proc/self/fd"), files);
    CHECK(entries_of("/proc/self/task") <= threads + 1, "%d threads", entries_of("/proc/self/task"));
}

/* A library's duplicates of the world, each called a few times, also before the world is: all calls are rondo's. */
static void duplicates(void)
{
    MPI_Comm first, second;

    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    CHECK(sum_of(rank, first) == nranks * (nranks - 1) / 2, "the sum on the first duplicate");
    MPI_Comm_dup(first, &second);
    MPI_Barrier(second);
    CHECK(sum_of(1, second) == nranks, "the sum on the second duplicate");
    MPI_Comm_free(&first);
    CHECK(sum_of(2, MPI_COMM_WORLD) == 2 * nranks, "the sum on the world");
    MPI_Comm_free(&second);
    for (int i = 0; i < 10; i++) { /* what serves them outlives them all */
        MPI_Comm_dup(MPI_COMM_WORLD, &first);
        CHECK(sum_of(i, first) == i * nranks, "the sum on duplicate %d", i);
        MPI_Comm_free(&first);
    }
}

/* 17: made by its members alone, while the others wait for something else. */
static void members(void)
{
    MPI_Group world, some;
    MPI_Comm comm;
    int ranks[2] = {0, 1}, token = 0;

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, ranks, &some);
    if (rank < 2) {
        MPI_Comm_create_group(MPI_COMM_WORLD, some, 3, &comm);
        for (int i = 0; i < MANY; i++)
            CHECK(sum_of(rank, comm) == 1, "the sum of two");
        MPI_Comm_free(&comm);
        for (int r = 2; rank == 0 && r < nranks; r++)
            MPI_Send(&token, 1, MPI_INT, r, 4, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&token, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Group_free(&some);
    MPI_Group_free(&world);
}

/* 17: the many ways to make one. */
static int make_in_way(int way, MPI_Comm *comm)
{
    int dims[2] = {nranks, 1}, periods[2] = {0}, remain[2] = {1, 0}, degrees[MOST_RANKS], edges[MOST_RANKS];
    MPI_Comm half, inter;
    MPI_Group group;

    for (int r = 0; r < nranks; r++) { /* a ring */
        degrees[r] = r + 1;
        edges[r] = (r + 1) % nranks;
    }
    switch (way) {
    case 0:
        return MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, comm);
    case 1:
        MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &half);
        MPI_Cart_sub(half, remain, comm);
        return MPI_Comm_free(&half);
    case 2:
        return MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, comm);
    case 3:
        return MPI_Graph_create(MPI_COMM_WORLD, nranks, degrees, edges, 0, comm);
    case 4:
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &inter);
        MPI_Intercomm_merge(inter, rank % 2, comm);
        MPI_Comm_free(&inter);
        return MPI_Comm_free(&half);
    default:
        MPI_Comm_group(MPI_COMM_WORLD, &group);
        MPI_Comm_create(MPI_COMM_WORLD, group, comm);
        return MPI_Group_free(&group);
    }
}
static void made(void)
{
    for (int way = 0; way < 6; way++) {
        MPI_Comm comm = MPI_COMM_NULL;
        int size, place;
        make_in_way(way, &comm);
        MPI_Comm_size(comm, &size);
        MPI_Comm_rank(comm, &place);
        CHECK(size == nranks, "way %d: a communicator of %d", way, size);
        for (int i = 0; i < MANY; i++) {
            int value = place == i % size ? 100 * i + place : -1;
            MPI_Bcast(&value, 1, MPI_INT, i % size, comm);
            CHECK(value == 100 * i + i % size, "way %d: a broadcast gives %d", way, value);
            CHECK(sum_of(place, comm) == size * (size - 1) / 2, "way %d: the sum", way);
        }
        MPI_Comm_free(&comm);
    }
}

/* 17: ranks that were spawned, which may have no interposer, together with those that have one. */
static void with_spawned(MPI_Comm inter, int high)
{
    MPI_Comm all, kin;
    int size, place;

    MPI_Intercomm_merge(inter, high, &all);
    MPI_Comm_size(all, &size);
    MPI_Comm_rank(all, &place);
    MPI_Comm_split(all, high, place, &kin); /* of one world again, in another order */
    for (int i = 0; i < MANY; i++) {
        CHECK(sum_of(place, all) == size * (size - 1) / 2, "sum %d with those spawned", i);
        CHECK(sum_of(1, kin) == (high ? 2 : nranks), "sum %d of one kind", i);
    }
    MPI_Comm_free(&kin);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&inter);
}
static char *program;
static void spawned(void)
{
    MPI_Comm inter;
    int code;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    code = MPI_Comm_spawn(program, MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (code != MPI_SUCCESS) {
        if (!rank)
            printf("this MPI cannot spawn here\n");
        return;
    }
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_ARE_FATAL);
    with_spawned(inter, 0);
}

/* 18, and intercommunicators */
static void others(void)
{
    MPI_Comm half, inter;
    int value = rank + 1, sum = 0, local, remote;

    for (int i = 0; i < MANY; i++)
        CHECK(sum_of(rank, MPI_COMM_SELF) == rank, "the sum of one");
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 6, &inter);
    MPI_Comm_size(half, &local);
    MPI_Comm_remote_size(inter, &remote);
    for (int i = 0; i < MANY; i++) {
        value = 1;
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, inter);
        CHECK(sum == remote, "the sum of the others is %d", sum);
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* 19: a collective in the callback of MPI_Finalize. */
static int at_the_end(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    CHECK(sum_of(1, MPI_COMM_WORLD) == nranks, "the sum in MPI_Finalize");
    return MPI_SUCCESS;
}
static void finalize(void)
{
    int key;

    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_the_end, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    warm(MPI_COMM_WORLD);
}

/* 20: an MPI that deletes no attribute of MPI_COMM_WORLD at the end, as Open MPI 5, played with any. The first rank
 * leaves while the others are still there, and none may take it for dead. */
static int keeps_worlds;
static MPI_Comm_delete_attr_function *own_delete[4];
static int delete_but_worlds(MPI_Comm comm, int key, void *value, void *which)
{
    return comm == MPI_COMM_WORLD ? MPI_SUCCESS : own_delete[(intptr_t)which](comm, key, value, NULL);
}
int PMPI_Comm_create_keyval(MPI_Comm_copy_attr_function *copies, MPI_Comm_delete_attr_function *deletes, int *key,
                            void *extra)
{
    int (*next)(MPI_Comm_copy_attr_function *, MPI_Comm_delete_attr_function *, int *, void *) =
        (int (*)(MPI_Comm_copy_attr_function *, MPI_Comm_delete_attr_function *, int *, void *))dlsym(
            RTLD_NEXT, "PMPI_Comm_create_keyval");
    static intptr_t which;

    if (!keeps_worlds)
        return next(copies, deletes, key, extra);
    own_delete[which] = deletes;
    return next(copies, delete_but_worlds, key, (void *)which++);
}
static void stay(void)
{
    usleep(rank ? 400000 : 0);
}
static void kept(void)
{
    keeps_worlds = 1;
    warm(MPI_COMM_WORLD);
    keeps_worlds = 0;
    atexit(stay);
}

static const corner_t corners[] = {{"attributes", attributes},
                                   {"freeing", freeing},
                                   {"freeing_alone", freeing_alone},
                                   {"lifetimes", lifetimes},
                                   {"duplicates", duplicates},
                                   {"members", members},
                                   {"made", made},
                                   {"spawned", spawned},
                                   {"others", others},
                                   {"finalize", finalize},
                                   {"kept", kept}};

int main(int argc, char **argv)
{
    MPI_Comm parent;

    corners_begin(argc, argv);
    program = argv[0];
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        with_spawned(parent, 1);
        MPI_Finalize();
        return failures != 0;
    }
    return corners_run(argc, argv, corners, sizeof corners / sizeof corners[0]);
}
