/* What is done before and after every call from Fortran: see glue.h.
 *
 * A buffer that is an array section with gaps is refused, because it arrives here without having been copied to
 * contiguous memory, and rondo does not copy it either. A type(c_ptr) stands for the address in it. The descriptors of
 * some compilers, such as flang, do not tell that an argument is one. A scalar that might be one is then refused, so
 * that it is not taken for data.
 */
#include "fortran/glue.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/binding.h"

void rd_f_begin(rd_f_call_t *c, const char *name, rondo_comm_t comm, int *ierror)
{
    c->name = name;
    c->comm = comm;
    c->ierror = ierror;
    c->result = RONDO_SUCCESS;
    c->buffers = c->tables = c->nranks = 0;
    c->much = NULL;
}

static void refuse(rd_f_call_t *c, const char *what, const char *why)
{
    char sentence[300];

    if (c->result != RONDO_SUCCESS)
        return;
    snprintf(sentence, sizeof sentence, "%s %s", what, why);
    c->result = rondo_call_refuse(c->comm, RONDO_ERR_INVALID_ARGUMENT, c->name, sentence);
}

/* Returns the first dimension, counted from 1, in which elements are not adjacent, or 0 if the array is contiguous. The
 * last extent of an assumed-size array is -1. */
static int gap(const CFI_cdesc_t *d)
{
    CFI_index_t next = (CFI_index_t)d->elem_len;
    int found = 0;

    for (int i = 0; i < d->rank; i++) {
        if (d->dim[i].extent == 0)
            return 0;
        if (d->dim[i].extent != 1 && d->dim[i].sm != next && !found)
            found = i + 1;
        next *= d->dim[i].extent;
    }
    return found;
}

/* What this compiler's descriptor tells about c_null_ptr. It is found out once; threads that race find the same. */
enum { NOT_REQUESTED, SAYS_NOTHING, SAYS_VARIABLE, SAYS_VALUE };
static int address_kind = NOT_REQUESTED;

void rd_f_saw_address(const CFI_cdesc_t *buffer)
{
    int kind = buffer->type != CFI_type_cptr ? SAYS_NOTHING : buffer->base_addr ? SAYS_VARIABLE : SAYS_VALUE;

    __atomic_store_n(&address_kind, kind, __ATOMIC_RELAXED);
}

static int kind_of_address(void)
{
    if (__atomic_load_n(&address_kind, __ATOMIC_RELAXED) == NOT_REQUESTED)
        rondo_f_pass_address();
    return __atomic_load_n(&address_kind, __ATOMIC_RELAXED);
}

/* Returns true if the address belongs to memory of this process. */
static bool mapped(const void *address)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned char resident;

    return mincore((void *)((uintptr_t)address / page * page), 1, &resident) == 0;
}

/* Takes the address from a type(c_ptr). The descriptor should point to a variable that holds the address. But for an
 * expression such as c_loc(x) or c_null_ptr, gfortran 12 gives the value in place of the pointer to it, and nothing
 * distinguishes the two cases. A null pointer must be a value. In other cases on the host, what is read here may be the
 * user's data instead of an address. That is hardly ever an address of this process, and is then refused, before
 * anything is overwritten. */
static void take_address(rd_f_call_t *c, const char *what, const CFI_cdesc_t *buffer)
{
    void *address = buffer->base_addr ? *(void **)buffer->base_addr : NULL;
    int device = RONDO_DEVICE_HOST;

    c->address[c->buffers] = address;
    if (!address || kind_of_address() != SAYS_VALUE || mapped(address))
        return;
    if (c->comm && rondo_comm_device(c->comm, &device) == RONDO_SUCCESS && device == RONDO_DEVICE_HOST)
        refuse(c, what,
               "is an expression of type(c_ptr), which this compiler passes on as if it were a variable, or a "
               "wild address: assign it to a variable and pass that, or pass the array itself");
}

void rd_f_buffer(rd_f_call_t *c, const char *what, const CFI_cdesc_t *buffer)
{
    int where;
    char why[200];

    c->address[c->buffers] = buffer->base_addr;
    c->what[c->buffers] = what;
    c->element[c->buffers] = 0;
    if (buffer->version != CFI_VERSION) {
        refuse(c, what,
               "comes from another Fortran compiler than librondo_fortran was built with: build it again with "
               "yours (configure FC=...)");
    } else if (buffer->rank == 0 && buffer->type == CFI_type_cptr) {
        take_address(c, what, buffer);
    } else if (buffer->rank == 0 && buffer->elem_len == sizeof(void *) && buffer->type == CFI_type_struct &&
               kind_of_address() == SAYS_NOTHING) {
        refuse(c, what,
               "is one element of a derived type as long as an address, and this compiler does not say whether "
               "it is a type(c_ptr): pass an array, by c_f_pointer if what you have is an address");
    } else if ((where = gap(buffer)) != 0) {
        snprintf(why, sizeof why,
                 "is not contiguous: it has gaps in dimension %d, and rondo does not copy it; pass a contiguous array, "
                 "or copy the section into one and back",
                 where);
        refuse(c, what, why);
    } else {
        c->element[c->buffers] = buffer->elem_len;
        c->structure[c->buffers] = buffer->type == CFI_type_struct || buffer->type == CFI_type_char;
    }
    c->buffers++;
}

static bool fits(const rd_f_call_t *c, int i, int type, size_t size)
{
    size_t element = c->element[i];

    if (element == 0 || element == size || (c->structure[i] && element % size == 0))
        return true;
    return type >= RONDO_FLOAT32_INT32 && type <= RONDO_FLOAT64_FLOAT64 && 2 * element == size;
}

void rd_f_type(rd_f_call_t *c, int type, int only_root, int root)
{
    size_t size = rondo_type_size((rondo_type_t)type);
    char why[240];
    int rank = root;

    if (only_root != RD_F_NONE && rondo_comm_rank(c->comm, &rank) != RONDO_SUCCESS)
        return; /* no communicator: the operation will say so */
    for (int i = 0; i < c->buffers && size; i++) {
        if ((i == only_root && rank != root) || fits(c, i, type, size))
            continue;
        snprintf(
            why, sizeof why,
            "has elements of %zu bytes, but those of the rondo type %d have %zu: give the type of the elements, or "
            "what they lie in as a type(c_ptr)",
            c->element[i], type, size);
        refuse(c, c->what[i], why);
    }
}

size_t *rd_f_table(rd_f_call_t *c, int present)
{
    size_t **table = &c->table[c->tables++];

    *table = NULL;
    if (!present || c->result != RONDO_SUCCESS)
        return NULL;
    if (c->nranks == 0 && rondo_comm_size(c->comm, &c->nranks) != RONDO_SUCCESS)
        return NULL; /* there is no communicator, which the operation reports */
    if (c->nranks > RD_F_FEW && !c->much) {
        c->much = malloc((size_t)c->nranks * RD_F_TABLES * sizeof *c->much);
        if (!c->much) {
            c->result = rondo_call_refuse(c->comm, RONDO_ERR_NO_MEMORY, c->name, "no memory for the counts");
            return NULL;
        }
    }
    *table = (c->much ? c->much : c->few) + (c->tables - 1) * c->nranks;
    return *table;
}

/* Ends the program with one line for `error stop`: the message, followed by the call and the result. The message of a
 * failed communicator may have been recorded in another thread, any other one was recorded in this one. */
static void stop(const rd_f_call_t *c)
{
    rondo_result_t failed = RONDO_SUCCESS;
    char text[700];
    int length;

    if (c->comm)
        (void)rondo_comm_get_error(c->comm, &failed);
    length = snprintf(text, sizeof text, "%s (%s: %s)", rondo_last_error(failed == c->result ? c->comm : NULL), c->name,
                      rondo_result_string(c->result));
    if (length >= (int)sizeof text)
        length = (int)sizeof text - 1;
    rondo_f_stop(text, &length);
}

void rd_f_end(rd_f_call_t *c)
{
    free(c->much);
    if (c->ierror)
        *c->ierror = c->result;
    else if (c->result != RONDO_SUCCESS && c->result != RONDO_IN_PROGRESS)
        stop(c);
}
