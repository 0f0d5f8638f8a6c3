/* A program without an MPI that opens libraries, of which the last one has one, as Python does: its names are not
 * global. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *library = NULL;
    int (*go)(void);

    for (int i = 1; i < argc; i++)
        library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    go = library ? (int (*)(void))dlsym(library, "go") : NULL;
    if (!go) {
        printf("%s\n", dlerror());
        return 1;
    }
    return go();
}
