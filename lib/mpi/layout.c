/* Types in memory. A collective moves bytes: those of a dense type lie where the user has them; those of others are
 * packed and unpacked here, by the MPI's own MPI_Pack, on this rank alone. Another rank may describe the same bytes by
 * another type.
 *
 * Size and extent do not tell a dense type: its blocks may lie in another order than they are sent in, or one on the
 * other with a hole between. Only a named type and what is a row of those is taken for dense. What has been found out
 * about a derived type is kept as its attribute. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/interpose.h"

static _Atomic int keyval = MPI_KEYVAL_INVALID;
static char dense_mark, loose_mark; /* the attribute's values are their addresses */

static void start(void)
{
    int mine = MPI_KEYVAL_INVALID, none = MPI_KEYVAL_INVALID;

    PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &mine, NULL);
    if (!atomic_compare_exchange_strong(&keyval, &none, mine))
        PMPI_Type_free_keyval(&mine);
}

/* What a type says of how it was made: how many numbers, addresses and types were given for it. */
typedef struct {
    int combiner;
    MPI_Count ints, counts, addresses, types;
} envelope_t;

#if MPI_VERSION >= 4
/* Of one that was made with large counts (MPI_Type_contiguous_c) the older calls are an error. */
static bool open_envelope(MPI_Datatype type, envelope_t *e)
{
    return PMPI_Type_get_envelope_c(type, &e->ints, &e->addresses, &e->counts, &e->types, &e->combiner) == MPI_SUCCESS;
}

static bool get_contents(MPI_Datatype type, const envelope_t *e, MPI_Datatype *of)
{
    int ints[1];
    MPI_Aint addresses[1];
    MPI_Count counts[1];

    return PMPI_Type_get_contents_c(type, e->ints, 0, e->counts, 1, ints, addresses, counts, of) == MPI_SUCCESS;
}
#else
static bool open_envelope(MPI_Datatype type, envelope_t *e)
{
    int ints, addresses, types;
    bool good = PMPI_Type_get_envelope(type, &ints, &addresses, &types, &e->combiner) == MPI_SUCCESS;

    if (good)
        *e = (envelope_t){e->combiner, ints, 0, addresses, types};
    return good;
}

static bool get_contents(MPI_Datatype type, const envelope_t *e, MPI_Datatype *of)
{
    int ints[1];
    MPI_Aint addresses[1];

    return PMPI_Type_get_contents(type, (int)e->ints, 0, 1, ints, addresses, of) == MPI_SUCCESS;
}
#endif

int rd_mpi_type_open(MPI_Datatype type, MPI_Datatype *of)
{
    envelope_t e = {.combiner = MPI_UNDEFINED};

    *of = MPI_DATATYPE_NULL;
    if (!open_envelope(type, &e))
        return MPI_UNDEFINED;
    if ((e.combiner == MPI_COMBINER_DUP || e.combiner == MPI_COMBINER_CONTIGUOUS) && e.ints <= 1 && e.counts <= 1 &&
        !e.addresses && e.types == 1 && !get_contents(type, &e, of))
        *of = MPI_DATATYPE_NULL;
    return e.combiner;
}

/* Those that MPI makes for a precision are predefined as well, though they have no names. */
void rd_mpi_type_close(MPI_Datatype of)
{
    envelope_t e = {.combiner = MPI_COMBINER_NAMED};

    if (open_envelope(of, &e) && e.combiner != MPI_COMBINER_NAMED && e.combiner != MPI_COMBINER_F90_REAL &&
        e.combiner != MPI_COMBINER_F90_COMPLEX && e.combiner != MPI_COMBINER_F90_INTEGER)
        PMPI_Type_free(&of);
}

/* A row of a dense type, or a duplicate of one? Others are looked at no further. */
static bool is_row(MPI_Datatype type)
{
    MPI_Datatype of;
    const rd_mpi_named_t *named;
    bool dense;

    if (rd_mpi_type_open(type, &of) == MPI_COMBINER_NAMED) {
        named = rd_mpi_named(type);
        return named && named->dense;
    }
    if (of == MPI_DATATYPE_NULL)
        return false;
    dense = is_row(of);
    rd_mpi_type_close(of);
    return dense;
}

/* The MPI refuses to pack what was not committed. */
static bool is_committed(MPI_Datatype type)
{
    char nothing[1];
    int position = 0;

    return PMPI_Pack(nothing, 0, type, nothing, 0, &position, rd_mpi_private) == MPI_SUCCESS;
}

static bool derived(MPI_Datatype type, rd_mpi_layout_t *layout)
{
    MPI_Count size, lb, extent, true_lb, true_extent;
    char *mark = NULL;
    int found = 0;

    if (atomic_load(&keyval) == MPI_KEYVAL_INVALID)
        start();
    if (PMPI_Type_get_attr(type, atomic_load(&keyval), &mark, &found) != MPI_SUCCESS)
        return false;
    if (!found) {
        if (!is_committed(type))
            return false;
        mark = is_row(type) ? &dense_mark : &loose_mark;
        PMPI_Type_set_attr(type, atomic_load(&keyval), mark);
    }
    PMPI_Type_size_x(type, &size);
    PMPI_Type_get_extent_x(type, &lb, &extent);
    PMPI_Type_get_true_extent_x(type, &true_lb, &true_extent);
    *layout = (rd_mpi_layout_t){(size_t)size, (MPI_Aint)extent, (MPI_Aint)true_lb, mark == &dense_mark};
    return true;
}

bool rd_mpi_layout(MPI_Datatype type, rd_mpi_layout_t *layout)
{
    const rd_mpi_named_t *named;

    if (!rd_mpi_is_type(type))
        return false;
    named = rd_mpi_named(type);
    if (!named || !named->dense)
        return derived(type, layout);
    *layout = (rd_mpi_layout_t){named->size, (MPI_Aint)named->size, 0, true};
    return true;
}

/* Elements of which the bytes can be counted by an int. */
static MPI_Count most_at_once(const rd_mpi_layout_t *layout)
{
    return layout->size < INT_MAX / 2 ? INT_MAX / 2 / (MPI_Count)(layout->size ? layout->size : 1) : 1;
}

/* MPICH does not pack from MPI_BOTTOM, which is NULL: the same elements, counted from another address. The type that is
 * made for that must be freed. */
static MPI_Datatype from_elsewhere(MPI_Datatype type, int count, char *elsewhere)
{
    MPI_Aint back = -(MPI_Aint)(uintptr_t)elsewhere;
    MPI_Datatype shifted;

    PMPI_Type_create_hindexed(1, &count, &back, type, &shifted);
    PMPI_Type_commit(&shifted);
    return shifted;
}

static int pack_at_once(rd_mpi_comm_t *c, const char *from, int n, MPI_Datatype type, char *to, int bytes)
{
    static char elsewhere[8];
    MPI_Datatype shifted;
    int position = 0, result;

    if (from)
        return PMPI_Pack(from, n, type, to, bytes, &position, c->comm);
    shifted = from_elsewhere(type, n, elsewhere);
    result = PMPI_Pack(elsewhere, 1, shifted, to, bytes, &position, c->comm);
    PMPI_Type_free(&shifted);
    return result;
}

static int unpack_at_once(rd_mpi_comm_t *c, const char *from, int bytes, char *to, int n, MPI_Datatype type)
{
    static char elsewhere[8];
    MPI_Datatype shifted;
    int position = 0, result;

    if (to)
        return PMPI_Unpack(from, bytes, &position, to, n, type, c->comm);
    shifted = from_elsewhere(type, n, elsewhere);
    result = PMPI_Unpack(from, bytes, &position, elsewhere, 1, shifted, c->comm);
    PMPI_Type_free(&shifted);
    return result;
}

int rd_mpi_pack(rd_mpi_comm_t *c, const void *user, MPI_Count count, MPI_Datatype type, const rd_mpi_layout_t *layout,
                char *to)
{
    const char *from = user;

    if (layout->dense) {
        memcpy(to, from + layout->true_lb, (size_t)count * layout->size);
        return MPI_SUCCESS;
    }
    if (layout->size > INT_MAX)
        return rd_mpi_raise(c, MPI_ERR_TYPE);
    for (MPI_Count most = most_at_once(layout); count > 0 && layout->size;) {
        int n = (int)(count < most ? count : most);
        int result = pack_at_once(c, from, n, type, to, (int)((size_t)n * layout->size));
        if (result != MPI_SUCCESS)
            return result;
        from += n * layout->extent;
        to += (size_t)n * layout->size;
        count -= n;
    }
    return MPI_SUCCESS;
}

int rd_mpi_unpack(rd_mpi_comm_t *c, const char *from, void *user, MPI_Count count, MPI_Datatype type,
                  const rd_mpi_layout_t *layout)
{
    char *to = user;

    if (layout->dense) {
        memcpy(to + layout->true_lb, from, (size_t)count * layout->size);
        return MPI_SUCCESS;
    }
    if (layout->size > INT_MAX)
        return rd_mpi_raise(c, MPI_ERR_TYPE);
    for (MPI_Count most = most_at_once(layout); count > 0 && layout->size;) {
        int n = (int)(count < most ? count : most);
        int result = unpack_at_once(c, from, (int)((size_t)n * layout->size), to, n, type);
        if (result != MPI_SUCCESS)
            return result;
        to += n * layout->extent;
        from += (size_t)n * layout->size;
        count -= n;
    }
    return MPI_SUCCESS;
}

static int prepare(rd_mpi_comm_t *c, rd_mpi_bytes_t *b, void *user, MPI_Count count, MPI_Datatype type,
                   const rd_mpi_layout_t *layout)
{
    *b = (rd_mpi_bytes_t){.bytes = (size_t)count * layout->size, .user = user, .count = count, .type = type};
    b->layout = *layout;
    if (layout->dense) {
        b->at = (char *)user + (user ? layout->true_lb : 0);
        return MPI_SUCCESS;
    }
    b->at = b->owned = malloc(b->bytes ? b->bytes : 1);
    return b->owned ? MPI_SUCCESS : rd_mpi_raise(c, MPI_ERR_NO_MEM);
}

int rd_mpi_sent(rd_mpi_comm_t *c, rd_mpi_bytes_t *b, const void *user, MPI_Count count, MPI_Datatype type,
                const rd_mpi_layout_t *layout)
{
    int result = prepare(c, b, (void *)(uintptr_t)user, count, type, layout);

    if (result == MPI_SUCCESS && b->owned)
        result = rd_mpi_pack(c, user, count, type, layout, b->owned);
    if (result != MPI_SUCCESS)
        rd_mpi_bytes_free(b);
    return result;
}

int rd_mpi_receiving(rd_mpi_comm_t *c, rd_mpi_bytes_t *b, void *user, MPI_Count count, MPI_Datatype type,
                     const rd_mpi_layout_t *layout)
{
    return prepare(c, b, user, count, type, layout);
}

int rd_mpi_received(rd_mpi_comm_t *c, rd_mpi_bytes_t *b)
{
    return b->owned ? rd_mpi_unpack(c, b->owned, b->user, b->count, b->type, &b->layout) : MPI_SUCCESS;
}

void rd_mpi_bytes_free(rd_mpi_bytes_t *b)
{
    free(b->owned);
    b->owned = NULL;
}
