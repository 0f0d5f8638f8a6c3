/* Functions that fail. They are exported because a single missing symbol keeps a whole program from loading. Each logs
 * that it is not supported, with the reason from table.c.
 */
#include <string.h>

#include "nccl/later.h"
#include "nccl/shim.h"
#include "nccl/table.h"

static ncclResult_t refuse(const char *name)
{
    const char *note = "";

    for (int i = 0; i < nc_nfunctions; i++)
        if (strcmp(nc_functions[i].name, name) == 0)
            note = nc_functions[i].note;
    return nc_group_check(nc_error(NULL, ncclInvalidUsage,
                                   "nccl%s is not served by rondo: %s (rondo-info --nccl lists what is)", name, note));
}

#define REFUSE(name)                                                                                                   \
    ncclResult_t pnccl##name(void)                                                                                     \
    {                                                                                                                  \
        return refuse(#name);                                                                                          \
    }                                                                                                                  \
    NC_TWIN(name)

REFUSE(SetEncryption);
REFUSE(DevCommCreate);
REFUSE(DevCommDestroy);
REFUSE(CftBarrierCreateRequirement);
REFUSE(GetCftDeviceLeInfo);
REFUSE(GetLsaDevicePointer);
REFUSE(GetLsaMultimemDevicePointer);
REFUSE(GetMultimemDeviceLeInfo);
REFUSE(GetMultimemDevicePointer);
REFUSE(GetPeerDeviceLeInfo);
REFUSE(GetPeerDevicePointer);
REFUSE(GinBarrierCreateRequirement);
REFUSE(GinInboxA2ACreateRequirement);
REFUSE(GinOutboxCreateRequirement);
REFUSE(LLA2ACreateRequirement);
REFUSE(LsaBarrierCreateRequirement);

int pncclLLA2ACalcSlots(void)
{
    (void)refuse("LLA2ACalcSlots");
    return 0;
}
NC_TWIN(LLA2ACalcSlots);
