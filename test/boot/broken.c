/* How a connection ends, and what that says of the rank at its other end. One that is closed in order says that the
 * process has ended; a reset says so on one host, and from another host only that the connection is lost. The kernel
 * gives the reason once, and it stands, whether a send or a receive has got it. A rank that leaves with something
 * unread ends its connection in order, so that its farewell is not lost with it. And a silent host is given up soon
 * only when this process has got to ask it some times. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/boot_int.h"
#include "util/check.h"

#define LIMIT_MS 20000

static const rd_creds_t creds = {{1}, {2}};
static rd_env_t env;
static rd_chan_t *here, *there; /* of rank 0, which is under test, and of rank 1 */

static int accepted(int listener)
{
    struct pollfd p = {.fd = listener, .events = POLLIN};
    int fd = poll(&p, 1, LIMIT_MS) == 1 ? rd_sock_accept(listener) : -1;

    if (fd < 0)
        exit(1);
    return fd;
}

/* Loopback has many addresses: who comes by 127.0.0.1 to another one of them is as far as another host. */
static void connect_both(bool far)
{
    const rd_hello_t mine = {.purpose = RD_FOR_NEIGHBOUR};
    rd_addr_t addr = rd_addr_loopback(4);
    int64_t until = rd_clock_ms() + LIMIT_MS;
    int listener = -1;

    addr.ip[3] = far ? 2 : 1;
    if (rd_sock_listen(&listener, &addr, &env, NULL) != RONDO_SUCCESS)
        exit(1);
    there = rd_chan_client(rd_sock_connect(&addr), &creds, &addr, sizeof addr, &mine);
    here = rd_chan_server(accepted(listener), &creds, &addr, sizeof addr, &mine);
    rd_fd_close(listener);
    while (here->state != RD_CHAN_OPEN || there->state != RD_CHAN_OPEN) {
        if (rd_clock_ms() > until)
            exit(1);
        rd_chan_pump(there);
        rd_chan_pump(here);
    }
    CHECK(here->far == far && there->far == far, "%d, %d", here->far, there->far);
}

/* Returns when the kernel knows that the connection has come to its end, which is not read here. */
static void wait_for_end(const rd_chan_t *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};

    CHECK(poll(&p, 1, LIMIT_MS) == 1);
}

static void reset(rd_chan_t *c)
{
    const struct linger at_once = {.l_onoff = 1};

    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    rd_chan_free(c);
}

/* What rank 0 says of rank 1 when the connection has ended. */
static rd_boot_news_t judged(void)
{
    char whois[2][RD_WHOIS] = {"a:1", "b:2"};
    _Atomic unsigned char gone[2] = {0};
    rd_boot_t b = {.nranks = 2, .rounds = 0, .whois = whois, .gone = gone};
    rd_neighbour_t one = {.chan = here, .rank = 1};
    rd_boot_news_t news = {0};

    rd_chan_pump(here);
    CHECK(rd_chan_over(here));
    CHECK(rd_boot_hear(&b, &one, &news) == RONDO_ERR_REMOTE && news.failure.failed_rank == 1);
    return news;
}

static void says(rd_silence_t silence, const char *sentence)
{
    rd_boot_news_t news = judged();

    CHECK(news.silent == silence && news.failure.died == (silence == RD_SILENCE_DEATH), "%d", (int)news.silent);
    CHECK(strstr(news.failure.text, sentence), "\"%s\"", news.failure.text);
    CHECK((strstr(news.failure.text, "died") != NULL) == (silence == RD_SILENCE_DEATH), "\"%s\"", news.failure.text);
    rd_chan_free(here);
}

static void closed(void)
{
    check_now = "closed in order, from another host";
    connect_both(true);
    rd_chan_free(there);
    says(RD_SILENCE_DEATH, "rank 1 (b:2) died: ");

    check_now = "closed in order, and then this side sends";
    connect_both(true);
    rd_chan_free(there);
    wait_for_end(here);
    rd_chan_send(here, RD_REC_DATA, "a", 1);
    struct pollfd p = {.fd = here->fd};
    CHECK(poll(&p, 1, LIMIT_MS) == 1); /* the reset that answers it */
    rd_chan_send(here, RD_REC_DATA, "b", 1);
    says(RD_SILENCE_DEATH, "rank 1 (b:2) died: ");
}

static void was_reset(void)
{
    const char *lost = "the connection to rank 1 (b:2) from rank 0 was lost: it was reset; the process of rank 1 may have ended";

    check_now = "reset, on one host";
    connect_both(false);
    reset(there);
    wait_for_end(here);
    says(RD_SILENCE_DEATH, "rank 1 (b:2) died: ");

    check_now = "reset, from another host";
    connect_both(true);
    reset(there);
    wait_for_end(here);
    says(RD_SILENCE_BREAK, lost);

    check_now = "reset, and a send learns of it";
    connect_both(true);
    reset(there);
    wait_for_end(here);
    rd_chan_send(here, RD_REC_DATA, "a", 1);
    rd_chan_send(here, RD_REC_DATA, "b", 1);
    says(RD_SILENCE_BREAK, lost);
}

static void garbled(void)
{
    check_now = "a record that is none";
    connect_both(true);
    char nothing[RD_RECORD_HEAD];
    memset(nothing, -1, sizeof nothing);
    CHECK(send(there->fd, nothing, sizeof nothing, 0) == sizeof nothing);
    struct pollfd p = {.fd = here->fd, .events = POLLIN};
    CHECK(poll(&p, 1, LIMIT_MS) == 1);
    const unsigned char *data;
    size_t bytes;
    int type;
    CHECK(!rd_chan_next(here, &type, &data, &bytes));
    says(RD_SILENCE_BREAK, "the connection to rank 1 (b:2) from rank 0 was lost: Protocol error");
    rd_chan_free(there);
}

static void left(void)
{
    const unsigned char *data;
    size_t bytes;
    int type;

    check_now = "left with something unread";
    connect_both(true);
    rd_chan_send(there, RD_REC_LETTER, "why?", 4);
    struct pollfd p = {.fd = here->fd, .events = POLLIN};
    CHECK(poll(&p, 1, LIMIT_MS) == 1);
    rd_chan_send(here, RD_REC_FAREWELL, "farewell", 8);
    rd_chan_leave(here);
    wait_for_end(there);
    rd_chan_pump(there);
    CHECK(rd_chan_next(there, &type, &data, &bytes) && type == RD_REC_FAREWELL && bytes == 8);
    CHECK(!rd_chan_next(there, &type, &data, &bytes) && rd_chan_over(there) && there->error == 0, "%s",
          strerror(there->error));
    rd_chan_free(there);
}

static int limit_ms(int fd)
{
    int ms = -1;
    socklen_t bytes = sizeof ms;

    getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, &bytes);
    return ms;
}

static unsigned silent_ms(int fd)
{
    struct tcp_info info;
    socklen_t bytes = sizeof info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0)
        exit(1);
    return info.tcpi_last_ack_recv < info.tcpi_last_data_recv ? info.tcpi_last_ack_recv : info.tcpi_last_data_recv;
}

/* Without the kernel's own probes nothing is said on an idle connection, as by a host that is silent. */
static void doubted(void)
{
    int doubts = 0, soon, late;

    check_now = "doubted";
    connect_both(true);
    rd_sock_heartbeat(here->fd, false);
    soon = limit_ms(here->fd);
    rd_sock_heartbeat(here->fd, true);
    late = limit_ms(here->fd);
    CHECK(soon > 0 && soon < late, "%d ms, %d ms", soon, late);
    setsockopt(here->fd, SOL_SOCKET, SO_KEEPALIVE, &(int){0}, sizeof(int));
    rd_sock_doubt(here->fd, &doubts);
    CHECK(doubts == 0 || silent_ms(here->fd) > 1000, "without a reason");
    doubts = 0;
    while (silent_ms(here->fd) < 1500)
        usleep(10000);
    for (int n = 1; n <= 4; n++) {
        rd_sock_doubt(here->fd, &doubts);
        CHECK(doubts == n && limit_ms(here->fd) == late, "%d doubts: %d ms", doubts, limit_ms(here->fd));
    }
    rd_sock_doubt(here->fd, &doubts);
    CHECK(limit_ms(here->fd) == soon, "%d doubts: %d ms", doubts, limit_ms(here->fd));
    rd_chan_send(there, RD_REC_LETTER, "here", 4);
    struct pollfd p = {.fd = here->fd, .events = POLLIN};
    CHECK(poll(&p, 1, LIMIT_MS) == 1);
    rd_sock_doubt(here->fd, &doubts);
    CHECK((doubts == 0 && limit_ms(here->fd) == late) || silent_ms(here->fd) > 1000, /* without a core since then */
          "%d doubts: %d ms", doubts, limit_ms(here->fd));
    rd_chan_free(there);
    rd_chan_free(here);
}

int main(void)
{
    alarm(100);
    rd_log_set_level(RD_LOG_NONE);
    if (rd_env_read(&env) != RONDO_SUCCESS || rd_crypto_init(NULL) != RONDO_SUCCESS)
        return 1;
    closed();
    was_reset();
    garbled();
    left();
    doubted();
    printf("boot_broken: %d failures\n", failures);
    return failures != 0;
}
