/* Kernels that are wrong on purpose: what machine.h lists, by rd_sim_break or, for whole programs, by SIM_PLANT. */
#include "sim/machine_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace machine
{

static rd_sim_fault_t planted()
{
    static const struct {
        const char *name;
        rd_sim_fault_t fault;
    } all[] = {{"fence", RD_SIM_NO_FENCE},
               {"acquire", RD_SIM_NO_ACQUIRE},
               {"barrier", RD_SIM_NO_BARRIER},
               {"begin", RD_SIM_NO_BEGIN},
               {"follow", RD_SIM_NO_FOLLOW}};
    const char *name = getenv("SIM_PLANT");

    for (auto &a : all)
        if (name && !strcmp(name, a.name))
            return a.fault;
    if (!name)
        return RD_SIM_SOUND;
    fprintf(stderr, "SIM_PLANT=%s: there are fence, acquire, barrier, begin and follow\n", name);
    exit(2);
}

static const rd_sim_fault_t everywhere = planted();

__thread rd_sim_fault_t fault;
__thread const char *fault_from, *fault_to;
static __thread bool broken; /* by rd_sim_break, or SIM_PLANT has been asked */

void fault_begin()
{
    if (!broken)
        fault = everywhere;
    broken = true;
}

} // namespace machine

void rd_sim_break(rd_sim_fault_t kind, const void *from, const void *to)
{
    machine::broken = true;
    machine::fault = kind;
    machine::fault_from = (const char *)from;
    machine::fault_to = (const char *)to;
}
