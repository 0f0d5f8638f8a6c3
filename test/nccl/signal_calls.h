/* NCCL's one-sided calls, which the nccl.h of this tree does not have yet, by the names that programs use. */
#ifndef TEST_NCCL_SIGNAL_CALLS_H
#define TEST_NCCL_SIGNAL_CALLS_H

#include "nccl/later.h"

extern ncclResult_t ncclPutSignal(const void *localbuff, size_t count, ncclDataType_t datatype, int peer,
                                  ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags,
                                  ncclComm_t comm, cudaStream_t stream);
extern ncclResult_t ncclSignal(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream);
extern ncclResult_t ncclWaitSignal(int nDesc, ncclWaitSignalDesc_t *signalDescs, ncclComm_t comm, cudaStream_t stream);

#endif
