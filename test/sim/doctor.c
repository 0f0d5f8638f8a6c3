/* rondo-info doctor on a machine whose faults are planted: pairs whose copies arrive wrong or never (SIM_BROKEN), and
 * what a played NVML says of each GPU. Every fault is named, with what mends it; a machine without any is well. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../tools/doctor_pairs.h"
#include "util/check.h"
#include "util/found.h"
#include "util/nvml_played.h"

#define DEVICES 3

static void look(void)
{
    rd_env_t env = {0};

    said[0] = '\0';
    memset(counts, 0, sizeof counts);
    info_doctor_gpu(&env);
}

static void well(void)
{
    look();
    CHECK(counts[INFO_NOTE] == 0 && counts[INFO_WRONG] == 0, "%s", said);
    CHECK(strstr(said, "3 x NVIDIA Played, driver 580.00"), "%s", said);
    CHECK(strstr(said, "pairs: 3 GPUs, all move data right"), "%s", said);
}

static void settings(void)
{
    nvml_played.persistence_off = 1 << 1;
    nvml_played.exclusive = 1 << 2;
    nvml_played.limit[1] = 1200;
    nvml_played.uncorrected[2] = 7;
    nvml_played.bar1_mb = 256;
    nvml_played.narrow = 1 << 0;
    nvml_played.mig = 1 << 1;
    setenv("SIM_BROKEN", "2>0 corrupt", 1);
    look();
    CHECK(counts[INFO_WRONG] == 3 && counts[INFO_NOTE] == 5, "%s", said);
    CHECK(strstr(said, "off on GPU 1: ") && strstr(said, "nvidia-smi -pm 1"), "%s", said);
    CHECK(strstr(said, "one process a GPU on GPU 2"), "%s", said);
    CHECK(strstr(said, "1200 MHz on one GPU and 1980 MHz on another"), "%s", said);
    CHECK(strstr(said, "could not be corrected on GPU 2"), "%s", said);
    CHECK(strstr(said, "less than 512 MB on GPU 0 1 2"), "%s", said);
    CHECK(strstr(said, "GPU 0 has fewer lanes"), "%s", said);
    CHECK(strstr(said, "MIG: GPU 1 is divided"), "%s", said);
    CHECK(strstr(said, "GPU2 to GPU0: delivers wrong data: byte") && strstr(said, "ACS"), "%s", said);
    CHECK(!strstr(said, "GPU0 to GPU2"), "%s", said);
}

/* ---- a pair that hangs: the others are tried all the same */

static void remember(void *arg, const pair_t *pair)
{
    int(*verdicts)[DEVICES] = arg;

    if (pair->from >= 0 && pair->from < DEVICES && pair->to >= 0 && pair->to < DEVICES)
        verdicts[pair->from][pair->to] = (int)pair->verdict + 1;
}

static void hanging(void)
{
    int verdicts[DEVICES][DEVICES] = {{0}};
    char why[160];

    setenv("SIM_BROKEN", "1>0 hang", 1);
    CHECK(doctor_pairs(6000, remember, verdicts, why) == DEVICES, "%s", said);
    for (int a = 0; a < DEVICES; a++)
        for (int b = 0; b < DEVICES; b++)
            if (a != b && verdicts[a][b] - 1 != (a == 1 && b == 0 ? PAIR_HANGS : PAIR_WELL)) {
                printf("%d to %d: verdict %d\n", a, b, verdicts[a][b] - 1);
                failures++;
            }
    unsetenv("SIM_BROKEN");
}

static void unreachable(void)
{
    setenv("SIM_NO_PEERS", "1", 1);
    look();
    CHECK(counts[INFO_WRONG] == DEVICES * (DEVICES - 1), "%s", said);
    CHECK(strstr(said, "GPU1 to GPU2: has no peer access"), "%s", said);
    unsetenv("SIM_NO_PEERS");
    setenv("SIM_DEVICES", "0", 1);
    look();
    CHECK(strstr(said, "CUDA: it cannot be used"), "%s", said);
}

int main(void)
{
    alarm(180);
    setenv("SIM_DEVICES", "3", 1);
    setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent", 1);
    nvml_played.count = DEVICES;
    nvml_played.switched = 18;
    nvml_played.bus[0] = "0000:01:00.0";
    nvml_played.bus[1] = "0000:02:00.0";
    nvml_played.bus[2] = "0000:03:00.0";
    well();
    settings();
    unsetenv("SIM_BROKEN");
    nvml_played =
        (struct nvml_played){.count = DEVICES, .switched = 18, .bus = {"0000:01:00.0", "0000:02:00.0", "0000:03:00.0"}};
    hanging();
    unreachable();
    return failures != 0;
}
