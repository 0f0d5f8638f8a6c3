/* NCCL's configuration files: lines NAME=value, as if they stood in the environment, which takes precedence. As in
 * NCCL, the user's file is NCCL_CONF_FILE, or else ~/.nccl.conf; /etc/nccl.conf comes after it, and the first line of
 * a name counts; a line that begins with # is a comment. NCCL puts the lines into the environment. That races with any
 * thread of the program that reads it, so here they are a list of their own, and only NCCL_ and RONDO_ names count.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/conf_file.h"

#define LINE_BYTES 4096 /* as in NCCL; a line that is longer is skipped */

static nc_conf_line_t *lines, **last = &lines;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static nc_conf_line_t *find(const char *name)
{
    for (nc_conf_line_t *l = lines; l; l = l->next)
        if (strcmp(l->name, name) == 0)
            return l;
    return NULL;
}

static void keep(char *line)
{
    size_t key = strcspn(line, "=");
    nc_conf_line_t *new;

    if (line[key] != '=')
        return;
    line[key] = '\0';
    if ((strncmp(line, "NCCL_", 5) != 0 && strncmp(line, "RONDO_", 6) != 0) || find(line))
        return;
    if (!(new = malloc(sizeof *new + strlen(line + key + 1) + key + 2)))
        return;
    new->next = NULL;
    new->name = (char *)(new + 1);
    new->value = new->name + key + 1;
    memcpy((char *)(new + 1), line, key + 1);
    strcpy((char *)(new + 1) + key + 1, line + key + 1);
    *last = new;
    last = &new->next;
}

static void file_read(const char *path)
{
    FILE *file = fopen(path, "re");
    char line[LINE_BYTES];
    int whole = 1;

    while (file && fgets(line, sizeof line, file)) {
        size_t end = strcspn(line, "\n");
        int begins = whole;

        whole = line[end] == '\n' || feof(file);
        line[end] = '\0';
        if (end && line[end - 1] == '\r')
            line[end - 1] = '\0';
        if (begins && whole && line[0] != '#')
            keep(line);
    }
    if (file)
        fclose(file);
}

static void read_all(void)
{
    const char *named = getenv("NCCL_CONF_FILE"), *home = getenv("HOME");
    char path[LINE_BYTES];

    if (named && *named)
        file_read(named);
    else if (home && (size_t)snprintf(path, sizeof path, "%s/.nccl.conf", home) < sizeof path)
        file_read(path);
    file_read("/etc/nccl.conf");
}

const nc_conf_line_t *nc_conf_lines(void)
{
    pthread_once(&once, read_all);
    return lines;
}

const char *nc_conf_value(const char *name)
{
    pthread_once(&once, read_all);
    const nc_conf_line_t *line = find(name);
    return line && *line->value ? line->value : NULL;
}

const char *nc_env(const char *name)
{
    const char *value = getenv(name);

    return value ? value : nc_conf_value(name);
}
