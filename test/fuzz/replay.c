/* What libFuzzer would do, where there is none: every file of the target's corpus, then mutations of them from a fixed
 * seed. That finds what is broken for good; new paths are libFuzzer's to find, see test/fuzz/run.sh.
 *
 *   TARGET [--count N] [--seed S] [FILE...]       N mutations; with files these alone
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 8192    /* bytes of an input */
#define FILES 512    /* of a corpus */
#define ALARMED 5000 /* inputs that end within five minutes, however many follow */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

typedef struct input {
    unsigned char data[MOST];
    size_t bytes;
} input_t;

static input_t corpus[FILES];
static int ninputs;
static uint64_t state;

static unsigned below(unsigned limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((state >> 33) % limit);
}

/* The target gets a copy of exactly these bytes, so that a sanitizer sees a read beyond them. */
static void feed(const unsigned char *data, size_t bytes)
{
    unsigned char *copy = malloc(bytes + !bytes);

    if (!copy)
        exit(1);
    memcpy(copy, data, bytes);
    LLVMFuzzerTestOneInput(copy, bytes);
    free(copy);
}

static void load(const char *name)
{
    FILE *f = fopen(name, "rb");

    if (!f || ninputs == FILES) {
        fprintf(stderr, "cannot read %s\n", name);
        exit(1);
    }
    corpus[ninputs].bytes = fread(corpus[ninputs].data, 1, MOST, f);
    ninputs++;
    fclose(f);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* In the order of names, so that the seed means the same everywhere. */
static void load_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    char *names[FILES], path[2048];
    struct dirent *entry;
    int n = 0;

    while (dir && n < FILES && (entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.')
            names[n++] = strdup(entry->d_name);
    if (dir)
        closedir(dir);
    qsort(names, (size_t)n, sizeof *names, by_name);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        load(path);
        free(names[i]);
    }
}

static void mutate(input_t *m)
{
    *m = corpus[below((unsigned)ninputs)];
    for (unsigned k = 1 + below(4); k; k--) {
        unsigned at = m->bytes ? below((unsigned)m->bytes) : 0;
        switch (below(5)) {
        case 0:
            m->data[at] ^= (unsigned char)(1 << below(8));
            break;
        case 1:
            m->data[at] = (unsigned char)below(256);
            break;
        case 2:
            m->bytes = at;
            break;
        case 3: /* a piece of another one */
        {
            const input_t *other = &corpus[below((unsigned)ninputs)];
            size_t n = other->bytes < MOST - at ? other->bytes : MOST - at;
            memcpy(m->data + at, other->data, n);
            m->bytes = at + n > m->bytes ? at + n : m->bytes;
            break;
        }
        default:
            if (m->bytes < MOST)
                m->data[m->bytes++] = (unsigned char)below(256);
        }
    }
}

int main(int argc, char **argv)
{
    const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    const char *source = getenv("top_srcdir");
    char folder[1024];
    long count = 5000, i;
    static input_t mutant;
    int first = 1;

    state = 1;
    setenv("RONDO_DEBUG", "none", 0);
    for (; first + 1 < argc && strncmp(argv[first], "--", 2) == 0; first += 2) {
        if (strcmp(argv[first], "--count") == 0)
            count = atol(argv[first + 1]);
        else if (strcmp(argv[first], "--seed") == 0)
            state = strtoull(argv[first + 1], NULL, 0);
        else
            return 2;
    }
    if (strncmp(name, "lt-", 3) == 0)
        name += 3;
    snprintf(folder, sizeof folder, "%s/test/fuzz/corpus/%s", source ? source : ".", name);
    for (i = first; i < argc; i++)
        load(argv[i]);
    if (first == argc)
        load_folder(folder);
    printf("%s: %d inputs of the corpus", name, ninputs);
    if (ninputs == 0) {
        printf(": %s is empty\n", folder);
        return 1;
    }
    alarm(300);
    for (i = 0; i < ninputs; i++)
        feed(corpus[i].data, corpus[i].bytes);
    printf(", %ld mutations from seed %llu\n", first == argc ? count : 0, (unsigned long long)state);
    for (i = 0; i < count && first == argc; i++) {
        if (i % ALARMED == 0)
            alarm(300);
        mutate(&mutant);
        feed(mutant.data, mutant.bytes);
    }
    return 0;
}
