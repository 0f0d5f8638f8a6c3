/* A program without an MPI that opens a library which has one, as Python does: its names are not global. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*go)(void) = library ? (int (*)(void))dlsym(library, "go") : NULL;

    if (!go) {
        printf("%s\n", dlerror());
        return 1;
    }
    return go();
}
