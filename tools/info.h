/* The parts of rondo-info. Each returns the program's exit code: 0 good, 1 failed, 2 usage. */
#ifndef RD_INFO_H
#define RD_INFO_H

#include "exec/cuda/cuda.h"
#include "topo/graph.h"
#include "base/env.h"

void info_nccl(void);
int info_machine(const rd_env_t *env);
/* `argv` begins after "plan". */
int info_plan(const rd_env_t *env, int argc, char **argv);
/* `argv` begins after "memory". */
int info_memory(const rd_env_t *env, int argc, char **argv);
/* `argv` begins after "topo". */
int info_topo(const rd_env_t *env, int argc, char **argv);
/* `argv` begins after "scale". */
int info_scale(const rd_env_t *env, int argc, char **argv);

/* 1: a job of several nodes could not be made with these settings; the thread's error says why. */
int info_net(const rd_env_t *env);

/* `argv` begins after "doctor". */
int info_doctor(const rd_env_t *env, int argc, char **argv);
/* The doctor between the nodes of a job. `json`: see doctor_json.h. */
int info_doctor_nodes(const rd_env_t *env, bool json);
/* Says how much was found of each kind; 1: something is wrong. */
int info_found_sum(void);

/* A line of the doctor's: what was looked at, what to do about it (NULL: nothing), what was found. */
typedef enum { INFO_WELL, INFO_NOTE, INFO_WRONG } info_verdict_t;
void info_found(info_verdict_t verdict, const char *what, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The number that a file of the system holds; -1: there is none. */
int info_number_in(const char *path);
/* The doctor's areas: each calls info_found for everything that it has looked at. */
void info_doctor_host(const rd_env_t *env);
void info_doctor_net(const rd_env_t *env);
/* Rings between the GPUs; the same of a machine without a matrix; the machine, and its ring, as NCCL's XML, into a
 * file.
 */
int info_rings(const rd_graph_t *graph, const rd_env_t *env);
int info_graph(const rd_env_t *env, const char *name);
int info_large(const rd_graph_t *graph, const rd_env_t *env);
int info_xml(const rd_env_t *env, const char *name);
/* The GPUs of this machine or of RONDO_TOPO_FILE. */
int info_gpus(rd_gpu_topo_t *topo, const rd_env_t *env);
/* What the first `nranks` of them are to each other, for plans. */
rd_cuda_shape_t info_shape(const rd_gpu_topo_t *topo, int nranks);
void info_doctor_gpu(const rd_env_t *env);

#endif
