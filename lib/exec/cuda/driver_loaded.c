/* Is CUDA's driver in this process? To ask CUDA itself would load and start it: tenths of a second, threads and
 * descriptors, in every rank of a code that keeps to host memory. Weak, because the simulated machine has another
 * answer. */
#include <dlfcn.h>
#include <stddef.h>

#include "exec/cuda/cuda_int.h"

__attribute__((weak)) int rd_driver_loaded(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

    return driver != NULL && dlclose(driver) == 0;
}
