/* What every call from Fortran does before and after the call of rondo.h: it converts buffers from C descriptors to
 * addresses, widens tables of counts, and sets ierror to the result, or stops the program if ierror is absent.
 */
#ifndef RD_FORTRAN_GLUE_H
#define RD_FORTRAN_GLUE_H

#include <ISO_Fortran_binding.h>
#include <rondo.h>
#include <stdbool.h>

#pragma GCC visibility push(default) /* Fortran modules call these; all have the prefix rondo_f_ or rd_f_ */

#define RD_F_TABLES 4 /* as many as alltoallv has */
#define RD_F_FEW 64   /* up to this many ranks, tables need no memory of their own */

typedef struct rd_f_call {
    const char *name;
    rondo_comm_t comm; /* NULL: there is none, or the call ends it */
    int *ierror;       /* NULL: it is absent */
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

/* A function instead of an initialiser, so that `few` is not cleared in every call. */
void rd_f_begin(rd_f_call_t *c, const char *name, rondo_comm_t comm, int *ierror);
/* Converts the next buffer to an address, or refuses it with a message. */
void rd_f_buffer(rd_f_call_t *c, const char *what, const CFI_cdesc_t *buffer);
/* Compares the elements of the buffers with the rondo type: numbers must be as long, a string or a derived type a
 * multiple, and two numbers in a row may be a pair for MINLOC. A buffer that this rank's call does not use is not
 * looked at: `only_root` is the one that only the root uses, RD_F_NONE for no such one. */
#define RD_F_NONE (-1)
void rd_f_type(rd_f_call_t *c, int type, int only_root, int root);
/* Returns room for the next table, which has nranks entries that the caller fills in, or NULL if the table is absent or
 * there is an error. */
size_t *rd_f_table(rd_f_call_t *c, int present);
void rd_f_end(rd_f_call_t *c);

static inline rondo_stream_t rd_f_stream(const rondo_stream_t *stream)
{
    return stream ? *stream : NULL;
}

/* Defined in rondo_inside.f90: `error stop` with this text, and a call of rd_f_saw_address with a type(c_ptr). */
void rondo_f_stop(const char *text, const int *length) __attribute__((noreturn));
void rondo_f_pass_address(void);
void rd_f_saw_address(const CFI_cdesc_t *buffer);

#pragma GCC visibility pop
#endif
