/* Sizes, offsets and numbers that are compiled into programs: NCCL's, fact by fact.
 */
#include <stddef.h>

#include "nccl/later.h"

#define SAME(what, is) _Static_assert((what) == (is), #what " is " #is " in NCCL")

SAME(sizeof(ncclUniqueId), 128);
SAME(_Alignof(ncclUniqueId), 1);
SAME(sizeof(ncclConfig_t), 80);
SAME(offsetof(ncclConfig_t, size), 0);
SAME(offsetof(ncclConfig_t, magic), 8);
SAME(offsetof(ncclConfig_t, version), 12);
SAME(offsetof(ncclConfig_t, blocking), 16);
SAME(offsetof(ncclConfig_t, cgaClusterSize), 20);
SAME(offsetof(ncclConfig_t, minCTAs), 24);
SAME(offsetof(ncclConfig_t, maxCTAs), 28);
SAME(offsetof(ncclConfig_t, netName), 32);
SAME(offsetof(ncclConfig_t, splitShare), 40);
SAME(offsetof(ncclConfig_t, trafficClass), 44);
SAME(offsetof(ncclConfig_t, commName), 48);
SAME(offsetof(ncclConfig_t, collnetEnable), 56);
SAME(offsetof(ncclConfig_t, CTAPolicy), 60);
SAME(offsetof(ncclConfig_t, shrinkShare), 64);
SAME(offsetof(ncclConfig_t, nvlsCTAs), 68);
SAME(offsetof(ncclConfig_t, nChannelsPerNetPeer), 72);
SAME(offsetof(ncclConfig_t, nvlinkCentricSched), 76);
SAME(sizeof(ncclCollConfig_t), 72);
SAME(offsetof(ncclCollConfig_t, ext), 16);
SAME(offsetof(ncclCollConfig_t, minCTAs), 24);
SAME(offsetof(ncclCollConfig_t, maxCTAs), 28);
SAME(offsetof(ncclCollConfig_t, nvlsCTAs), 32);
SAME(offsetof(ncclCollConfig_t, cgaClusterSize), 36);
SAME(offsetof(ncclCollConfig_t, algSelection), 40);
SAME(offsetof(ncclCollConfig_t, forceAlgSelection), 48);
SAME(offsetof(ncclCollConfig_t, CTAPolicy), 52);
SAME(offsetof(ncclCollConfig_t, userProfilerTag), 56);
SAME(offsetof(ncclCollConfig_t, launchCompletionEvent), 64);
SAME(sizeof(ncclSimInfo_t), 24);
SAME(offsetof(ncclSimInfo_t, estimatedTime), 16);
SAME(sizeof(ncclResult_t), 4);
SAME(sizeof(ncclDataType_t), 4);
SAME(sizeof(ncclRedOp_t), 4);
SAME(ncclSuccess, 0);
SAME(ncclUnhandledCudaError, 1);
SAME(ncclSystemError, 2);
SAME(ncclInternalError, 3);
SAME(ncclInvalidArgument, 4);
SAME(ncclInvalidUsage, 5);
SAME(ncclRemoteError, 6);
SAME(ncclInProgress, 7);
SAME(ncclTimeout, 8);
SAME(ncclInt8, 0);
SAME(ncclUint8, 1);
SAME(ncclInt32, 2);
SAME(ncclUint32, 3);
SAME(ncclInt64, 4);
SAME(ncclUint64, 5);
SAME(ncclFloat16, 6);
SAME(ncclFloat32, 7);
SAME(ncclFloat64, 8);
SAME(ncclBfloat16, 9);
SAME(ncclFloat8e4m3, 10);
SAME(ncclFloat8e5m2, 11);
SAME(ncclNumTypes, 12);
SAME(ncclSum, 0);
SAME(ncclProd, 1);
SAME(ncclMax, 2);
SAME(ncclMin, 3);
SAME(ncclAvg, 4);
SAME(ncclNumOps, 5);
SAME(ncclScalarDevice, 0);
SAME(ncclScalarHostImmediate, 1);
SAME(NCCL_SPLIT_NOCOLOR, -1);
SAME(NCCL_CONFIG_UNDEF_INT, INT_MIN);
SAME(NCCL_API_MAGIC, 0xcafebeef);
SAME(NCCL_WIN_COLL_SYMMETRIC, 1);
SAME(NCCL_SHRINK_ABORT, 1);
SAME(NCCL_VERSION_CODE, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH));
SAME(NCCL_VERSION_CODE, 22809); /* what ncclGetVersion returns: builds compare the two */
SAME(NCCL_VERSION(2, 8, 4), 2804);
SAME(NCCL_VERSION(2, 28, 9), 22809);

int main(void)
{
    const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    const ncclSimInfo_t sim = NCCL_SIM_INFO_INITIALIZER;

    return !(config.size == sizeof config && config.magic == 0xcafebeef && config.version == NCCL_VERSION(2, 28, 9) &&
             config.blocking == INT_MIN && config.nvlinkCentricSched == INT_MIN && config.commName == NULL &&
             config.netName == NULL && sim.size == sizeof sim && sim.magic == 0x74685283 && sim.estimatedTime < 0);
}
