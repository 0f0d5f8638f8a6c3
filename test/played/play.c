/* Runs a command with hosts to play on (test/util/hosts.h): the ranks of test programs go to them, and so does what a
 * launcher starts through `play --on`. When the command has ended, or this program is killed, the hosts are gone.
 *
 *   play N COMMAND...            N hosts; the command runs beside their switch, where 10.99.7.254 is its own address.
 *                                The ranks of a test program in it take the hosts in turn, or, with RONDO_TEST_HOSTS,
 *                                as that says: 0,0,1 puts every third one on host 1
 *   play --on HOST COMMAND...    for the command: runs another one on a host
 *
 * Exit status: the command's; 77 where hosts cannot be played. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "util/enter.h"
#include "util/hosts.h"

static int on_host(char **argv)
{
    if (test_enter_played(atoi(argv[0])) != 0) {
        fprintf(stderr, "play: there is no host %s here\n", argv[0]);
        return 1;
    }
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}

static void tell(int nhosts)
{
    char paths[HOSTS_MOST * 64] = "", numbers[HOSTS_MOST * 4] = "";

    for (int i = 0; i < nhosts; i++) {
        snprintf(paths + strlen(paths), sizeof paths - strlen(paths), "%s%s", i ? " " : "", hosts_path(i));
        snprintf(numbers + strlen(numbers), sizeof numbers - strlen(numbers), "%s%d", i ? "," : "", i);
    }
    setenv("RONDO_TEST_PLAYED", paths, 1);
    setenv("RONDO_TEST_HOSTS", numbers, 0);
}

static int run(char **argv)
{
    pid_t parent = getpid(), pid = fork();
    int status;

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || hosts_enter(HOSTS_SWITCH) != 0)
            _exit(1);
        execvp(argv[0], argv);
        perror(argv[0]);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    int nhosts = argc > 2 ? atoi(argv[1]) : 0, code;

    if (argc > 3 && strcmp(argv[1], "--on") == 0)
        return on_host(argv + 2);
    if (nhosts < 1 || nhosts > HOSTS_MOST) {
        fprintf(stderr, "usage: play N COMMAND... | play --on HOST COMMAND...\n");
        return 2;
    }
    if (hosts_make(nhosts) != 0) {
        printf("play: needs root, `ip` and network namespaces\n");
        return 77;
    }
    tell(nhosts);
    code = run(argv + 2);
    hosts_remove();
    return code;
}
