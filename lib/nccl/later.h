/* Functions that libnccl.so.2 exports beyond those of nccl.h: they belong to NCCL's device-side headers and to versions
 * after 2.28. Callers define their structures; those that are read or written here have only the fields that this
 * library knows.
 */
#ifndef RD_NCCL_LATER_H
#define RD_NCCL_LATER_H

#include <stdbool.h>

#include "nccl/nccl.h"

#pragma GCC visibility push(default)

/* A team: this is rank `rank` of `nRanks` ranks, which are `stride` apart in the communicator. */
typedef struct ncclTeam {
    int nRanks, rank, stride;
} ncclTeam_t;

typedef struct ncclCommProperties {
    size_t size;
    unsigned int magic;
    unsigned int version;
    int rank;
    int nRanks;
    int cudaDev;
    int nvmlDev;
    bool deviceApiSupport;
    bool multimemSupport;
    int ginType; /* 0: there is none */
    /* Fields of versions after 2.29.3: */
    int nLsaTeams;
    bool hostRmaSupport;
    int railedGinType;
} ncclCommProperties_t;

ncclResult_t pncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *props);
ncclTeam_t pncclTeamWorld(ncclComm_t comm);
ncclTeam_t pncclTeamLsa(ncclComm_t comm);
ncclTeam_t pncclTeamRail(ncclComm_t comm);
int pncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank);
int pncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank);
ncclTeam_t pncclTeamCft(ncclComm_t comm, int mode); /* `mode` is an enumeration of NCCL's */
ncclTeam_t pncclTeamCftMultimem(ncclComm_t comm);

ncclResult_t pncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void **outUserPtr);

typedef enum {
    ncclStatGpuMemSuspend = 0,   /* bytes that a suspension would give back */
    ncclStatGpuMemSuspended = 1, /* no bytes: 1 between a suspension and the end of it, else 0 */
    ncclStatGpuMemPersist = 2,   /* bytes that it would not */
    ncclStatGpuMemTotal = 3
} ncclCommMemStat_t;

ncclResult_t pncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value);

/* A parameter, until the process ends. */
typedef struct ncclParamHandle *ncclParamHandle_t;

ncclResult_t pncclParamBind(ncclParamHandle_t *out, const char *key);
ncclResult_t pncclParamGetI8(ncclParamHandle_t h, int8_t *out);
ncclResult_t pncclParamGetI16(ncclParamHandle_t h, int16_t *out);
ncclResult_t pncclParamGetI32(ncclParamHandle_t h, int32_t *out);
ncclResult_t pncclParamGetI64(ncclParamHandle_t h, int64_t *out);
ncclResult_t pncclParamGetU8(ncclParamHandle_t h, uint8_t *out);
ncclResult_t pncclParamGetU16(ncclParamHandle_t h, uint16_t *out);
ncclResult_t pncclParamGetU32(ncclParamHandle_t h, uint32_t *out);
ncclResult_t pncclParamGetU64(ncclParamHandle_t h, uint64_t *out);
ncclResult_t pncclParamGetStr(ncclParamHandle_t h, const char **out);
ncclResult_t pncclParamGet(ncclParamHandle_t h, void *out, int maxLen, int *len);
ncclResult_t pncclParamGetParameter(const char *key, const char **value, int *valueLen);
ncclResult_t pncclParamGetAllParameterKeys(const char ***table, int *tableLen);
void pncclParamDumpAll(void);

/* A collective's own config. */
typedef struct ncclCollConfig {
    size_t size;
    unsigned int magic;
    unsigned int version;
    void *ext; /* a list of vendors' options, which are for others */
    int minCTAs;
    int maxCTAs;
    int nvlsCTAs;
    int cgaClusterSize;
    const char *algSelection;
    int forceAlgSelection; /* 1: what algSelection asks for must be kept to */
    int CTAPolicy;
    uint64_t userProfilerTag;
    struct CUevent_st *launchCompletionEvent; /* a cudaEvent_t; since 2.32 */
} ncclCollConfig_t;

ncclResult_t pncclAllReduceConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                                  ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t pncclBroadcastConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                                  ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t pncclReduceConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                               ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream,
                               const ncclCollConfig_t *config);
ncclResult_t pncclAllGatherConfig(const void *sendbuff, void *recvbuff, size_t sendcount, ncclDataType_t datatype,
                                  ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t pncclReduceScatterConfig(const void *sendbuff, void *recvbuff, size_t recvcount, ncclDataType_t datatype,
                                      ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
                                      const ncclCollConfig_t *config);
ncclResult_t pncclAlltoAllConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                                 ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t pncclGatherConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                               ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t pncclScatterConfig(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                                ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config);

typedef struct ncclWaitSignalDesc {
    int opCnt;
    int peer;
    int sigIdx;
    int ctx;
} ncclWaitSignalDesc_t;

ncclResult_t pncclPutSignal(const void *localbuff, size_t count, ncclDataType_t datatype, int peer,
                            ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags,
                            ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclSignal(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclWaitSignal(int nDesc, ncclWaitSignalDesc_t *signalDescs, ncclComm_t comm, cudaStream_t stream);

/* Ranks of `comm` call with rank -1, and may pass NULL for the id where one of them has made it by CommGetUniqueId, or
 * passes it; new ranks call with NULL for `comm`. */
ncclResult_t pncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *uniqueId);
ncclResult_t pncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId, int rank, ncclComm_t *newcomm,
                           ncclConfig_t *config);

#define NCCL_SUSPEND_MEM 0x01
ncclResult_t pncclCommSuspend(ncclComm_t comm, int flags);
ncclResult_t pncclCommResume(ncclComm_t comm);

/* All of the following fail without reading their arguments. The calling convention lets the caller pass any. */
ncclResult_t pncclSetEncryption(void);
ncclResult_t pncclDevCommCreate(void);
ncclResult_t pncclDevCommDestroy(void);
ncclResult_t pncclCftBarrierCreateRequirement(void);
ncclResult_t pncclGetCftDeviceLeInfo(void);
ncclResult_t pncclGetLsaDevicePointer(void);
ncclResult_t pncclGetLsaMultimemDevicePointer(void);
ncclResult_t pncclGetMultimemDeviceLeInfo(void);
ncclResult_t pncclGetMultimemDevicePointer(void);
ncclResult_t pncclGetPeerDeviceLeInfo(void);
ncclResult_t pncclGetPeerDevicePointer(void);
ncclResult_t pncclGinBarrierCreateRequirement(void);
ncclResult_t pncclGinInboxA2ACreateRequirement(void);
ncclResult_t pncclGinOutboxCreateRequirement(void);
int pncclLLA2ACalcSlots(void);
ncclResult_t pncclLLA2ACreateRequirement(void);
ncclResult_t pncclLsaBarrierCreateRequirement(void);

#pragma GCC visibility pop

#endif
