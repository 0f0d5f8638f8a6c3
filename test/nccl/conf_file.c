/* NCCL's configuration files: what a line in one sets, what stands above it, and which of two files counts. Files are
 * read once a process: each case has one. Where a mount namespace may be made, this test has an /etc of its own.
 */
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/setting.h"
#include "nccl/conf_file.h"
#include "nccl/shim.h"
#include "util/check.h"

static char folder[64], home_file[128], other_file[128];

static bool put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    bool good = file && fputs(text, file) >= 0;

    return file && fclose(file) == 0 && good;
}

static void write_file(const char *path, const char *text)
{
    CHECK(put(path, text), "%s", path);
}

/* In a process of its own, `name` of rondo has the value `want`, "" for none, where `env` is set to `value`. */
static void becomes(const char *env, const char *value, const char *name, const char *want)
{
    char text[RD_SETTING_BYTES];
    int status = -1;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        const char *got;
        int same;

        if (env)
            setenv(env, value, 1);
        nc_settings();
        got = rd_setting_text(name, text);
        same = strcmp(got ? got : "", want) == 0;
        if (!same)
            printf("%s=%s: %s=%s, not %s\n", env ? env : "", env ? value : "", name, got ? got : "", want);
        fflush(stdout);
        _exit(!same);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "%s", name);
}

/* A user without rights may do it where he is root in a namespace of his own, which needs his numbers there. */
static bool own_mounts(void)
{
    char user[40], group[40];

    if (unshare(CLONE_NEWNS) == 0)
        return true;
    snprintf(user, sizeof user, "0 %u 1\n", (unsigned)getuid());
    snprintf(group, sizeof group, "0 %u 1\n", (unsigned)getgid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && put("/proc/self/setgroups", "deny") &&
           put("/proc/self/uid_map", user) && put("/proc/self/gid_map", group);
}

/* Has this process and its children see an empty /etc, without a change to that of the machine. */
static bool own_etc(void)
{
    return own_mounts() && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", "/etc", "tmpfs", 0, NULL) == 0;
}

/* The machine's file comes behind the user's, whichever that is. */
static void machine_file(void)
{
    if (!own_etc()) {
        printf("no mount namespace here: /etc/nccl.conf is not tried\n");
        return;
    }
    write_file("/etc/nccl.conf", "NCCL_HOSTID=etc\nRONDO_SLOTS=4\n");
    becomes(NULL, NULL, "RONDO_SLOTS", "4");
    becomes(NULL, NULL, "RONDO_HOSTID", "home");
    becomes("NCCL_HOSTID", "env", "RONDO_HOSTID", "env");
    becomes("NCCL_NET_PLUGIN", "site", "RONDO_NET_PLUGIN", "site");
    becomes("NCCL_CONF_FILE", other_file, "RONDO_SLOTS", "2");
    becomes("NCCL_CONF_FILE", other_file, "RONDO_HOSTID", "etc");
    becomes("NCCL_CONF_FILE", "/nonexistent/file", "RONDO_HOSTID", "etc");
}

int main(void)
{
    static char long_line[6000];

    snprintf(folder, sizeof folder, "/tmp/rondo-conf.XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    snprintf(home_file, sizeof home_file, "%s/.nccl.conf", folder);
    snprintf(other_file, sizeof other_file, "%s/other", folder);
    setenv("HOME", folder, 1);
    setenv("RONDO_NCCL_HOST", "1", 1);
    unsetenv("NCCL_CONF_FILE");
    unsetenv("RONDO_HOSTID");
    unsetenv("RONDO_SLOT_BYTES");
    unsetenv("NCCL_HOSTID");

    memset(long_line, 'x', sizeof long_line - 1);
    memcpy(long_line, "NCCL_HOSTID=", 12);
    memcpy(long_line + 4200, "\nRONDO_SLOTS=", 13); /* a line of its own after one that is too long */
    strcpy(long_line + 4213, "2\n");
    write_file(home_file, "# a comment\nNCCL_HOSTID=home=1\r\nnothing\nNCCL_HOSTID=again\nRONDO_SLOT_BYTES=4096\n"
                          "#NCCL_ALGO=Tree\nLD_LIBRARY_PATH_OF_NOBODY=1");
    write_file(other_file, long_line);

    becomes(NULL, NULL, "RONDO_HOSTID", "home=1");
    becomes(NULL, NULL, "RONDO_SLOT_BYTES", "4096");
    becomes(NULL, NULL, "RONDO_ALGO", "");
    becomes(NULL, NULL, "LD_LIBRARY_PATH_OF_NOBODY", "");
    becomes("NCCL_HOSTID", "env", "RONDO_HOSTID", "env");
    becomes("RONDO_HOSTID", "own", "RONDO_HOSTID", "own");
    /* NCCL_'s variable of the environment stands above RONDO_'s of the file. */
    becomes("NCCL_BUFFSIZE", "65536", "RONDO_SLOT_BYTES", "8192");
    becomes("NCCL_CONF_FILE", other_file, "RONDO_HOSTID", "");
    becomes("NCCL_CONF_FILE", other_file, "RONDO_SLOTS", "2");
    becomes("NCCL_CONF_FILE", "/nonexistent/file", "RONDO_HOSTID", "");

    write_file(home_file, "NCCL_BUFFSIZE=65536\nRONDO_SLOT_BYTES=1024\n");
    becomes(NULL, NULL, "RONDO_SLOT_BYTES", "1024");

    write_file(home_file, "NCCL_HOSTID=home\n");
    machine_file();

    unlink(home_file);
    unlink(other_file);
    rmdir(folder);
    return failures != 0;
}
