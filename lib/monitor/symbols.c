/* See symbols.h. A path may come from a forged record: nothing but a regular file is opened, nothing in it is believed,
 * and it is not mapped, as it may be cut short meanwhile. */
#include "monitor/symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor/out.h"

#define SECTIONS 4096  /* more than a file has */
#define PORTION 1024   /* symbols that are read at once */
#define MOST (1 << 24) /* symbols that are looked at */

typedef struct file {
    int fd;
    ElfW(Shdr) * sections;
    int nsections;
} file_t;

static bool read_at(int fd, void *to, size_t bytes, uint64_t at)
{
    return at <= INT64_MAX && pread(fd, to, bytes, (off_t)at) == (ssize_t)bytes;
}

static bool open_file(file_t *f, const char *path)
{
    struct stat st;
    ElfW(Ehdr) head;

    *f = (file_t){.fd = -1};
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (f->fd < 0 || !read_at(f->fd, &head, sizeof head, 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        head.e_shentsize != sizeof(ElfW(Shdr)) || head.e_shnum > SECTIONS)
        return false;
    f->nsections = head.e_shnum;
    f->sections = calloc((size_t)head.e_shnum + 1, sizeof *f->sections);
    return f->sections && read_at(f->fd, f->sections, (size_t)head.e_shnum * sizeof *f->sections, head.e_shoff);
}

static void close_file(file_t *f)
{
    free(f->sections);
    if (f->fd >= 0)
        close(f->fd);
}

/* Returns the first one that is not below `at`. */
static int first_from(const rd_symbol_t *symbols, int n, uint64_t at)
{
    int low = 0, high = n;

    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (symbols[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void take(const file_t *f, const ElfW(Shdr) * strings, const ElfW(Sym) * s, rd_symbol_t *symbols, int n)
{
    for (int i = first_from(symbols, n, s->st_value); i < n && symbols[i].at - s->st_value < s->st_size; i++) {
        char name[RD_SYMBOL_NAME] = "";
        if (symbols[i].name[0] || s->st_name >= strings->sh_size)
            continue;
        (void)!pread(f->fd, name, sizeof name - 1, (off_t)(strings->sh_offset + s->st_name));
        rd_out_plain_text(name, sizeof name);
        symbols[i].from = s->st_value;
        memcpy(symbols[i].name, name, sizeof name);
    }
}

static void read_table(const file_t *f, const ElfW(Shdr) * table, rd_symbol_t *symbols, int n)
{
    const uint64_t all = table->sh_size / sizeof(ElfW(Sym));
    ElfW(Sym) *portion = table->sh_link < (unsigned)f->nsections ? malloc(PORTION * sizeof *portion) : NULL;

    for (uint64_t i = 0; portion && i < all && i < MOST; i += PORTION) {
        const uint64_t m = all - i < PORTION ? all - i : PORTION;
        if (!read_at(f->fd, portion, m * sizeof *portion, table->sh_offset + i * sizeof *portion))
            break;
        for (uint64_t k = 0; k < m; k++)
            if ((portion[k].st_info & 0xf) == STT_FUNC && portion[k].st_shndx != SHN_UNDEF)
                take(f, &f->sections[table->sh_link], &portion[k], symbols, n);
    }
    free(portion);
}

/* The long table is not there in a file that was stripped; the short one has what other files may call. */
void rd_symbols_name(const char *path, rd_symbol_t *symbols, int n)
{
    static const unsigned types[] = {SHT_SYMTAB, SHT_DYNSYM};
    file_t f;

    if (open_file(&f, path))
        for (int t = 0; t < 2; t++)
            for (int i = 0; i < f.nsections; i++)
                if (f.sections[i].sh_type == types[t])
                    read_table(&f, &f.sections[i], symbols, n);
    close_file(&f);
}
