/* What every call from Fortran does around the call of rondo.h: buffers come as C descriptors and go as addresses,
 * tables of counts are widened, and the result goes into ierror, or stops the program where there is no ierror.
 */
#ifndef RD_FORTRAN_GLUE_H
#define RD_FORTRAN_GLUE_H

#include <ISO_Fortran_binding.h>
#include <rondo.h>
#include <stdbool.h>

#pragma GCC visibility push(default) /* the Fortran modules name these; everything is prefixed rondo_f_ or rd_f_ */

#define RD_F_TABLES 4 /* alltoallv has most */
#define RD_F_FEW 64   /* ranks whose tables need no memory of their own */

typedef struct rd_f_call {
    const char *name;
    rondo_comm_t comm; /* NULL: none, or one that is gone after the call */
    int *ierror;       /* NULL: absent */
    rondo_result_t result;
    void *address[2];
    size_t element[2]; /* bytes of an element of each buffer, as its descriptor says; 0: not known, or an address */
    bool structure[2]; /* it is of derived type */
    const char *what[2];
    int buffers;
    int nranks; /* set by the first table */
    int tables;
    size_t *table[RD_F_TABLES], *much;
    size_t few[RD_F_TABLES * RD_F_FEW];
} rd_f_call_t;

/* Not an initialiser: `few` shall not be cleared in every call. */
void rd_f_begin(rd_f_call_t *c, const char *name, rondo_comm_t comm, int *ierror);
/* The next buffer's address, or the sentence that says why not. */
void rd_f_buffer(rd_f_call_t *c, const char *what, const CFI_cdesc_t *buffer);
/* Compares the elements of the buffers with the rondo type: numbers must be as long, a string or a derived type a
 * multiple, and two numbers in a row may be a pair for MINLOC. A buffer that this rank's call does not use is not
 * looked at: `only_root` is the one that only the root uses, RD_F_NONE for no such one. */
#define RD_F_NONE (-1)
void rd_f_type(rd_f_call_t *c, int type, int only_root, int root);
/* Room for the next table, to be filled by the caller, nranks entries; NULL: it is absent, or there is an error. */
size_t *rd_f_table(rd_f_call_t *c, int present);
void rd_f_end(rd_f_call_t *c);

static inline rondo_stream_t rd_f_stream(const rondo_stream_t *stream)
{
    return stream ? *stream : NULL;
}

/* In rondo.f90: `error stop` with this text, and a call of rd_f_saw_address with a type(c_ptr) as the buffer. */
void rondo_f_stop(const char *text, const int *length) __attribute__((noreturn));
void rondo_f_pass_address(void);
void rd_f_saw_address(const CFI_cdesc_t *buffer);

#pragma GCC visibility pop
#endif
