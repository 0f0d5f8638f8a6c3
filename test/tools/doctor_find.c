/* What rondo-info doctor --network makes of its tables: every planted fault is named once, by the nodes that it is of,
 * and tables without a fault but with noise give no finding. The rounds of its tournament let every pair meet once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../tools/doctor_nodes.h"
#include "util/check.h"
#include "util/found.h"

#define MOST 24

static nodes_node_t node[MOST];
static nodes_way_t way[MOST * MOST];
static nodes_view_t view = {.node = node, .way = way, .reach_ms = 3000};
static unsigned long long state; /* of the noise */

/* 0.75 to 1.25 */
static double noise(void)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return 0.75 + 0.5 * (double)(state >> 40) / (double)(1 << 24);
}

/* Nodes that are alike, on a network of 10 Gbit/s. */
static void make(int n, unsigned seed)
{
    state = seed;
    memset(node, 0, sizeof node);
    memset(way, 0, sizeof way);
    view.n = n;
    for (int i = 0; i < n; i++) {
        snprintf(node[i].name, sizeof node[i].name, "n%d", i);
        snprintf(node[i].boot, sizeof node[i].boot, "boot%d", i);
        snprintf(node[i].version, sizeof node[i].version, "ucx 1.13.1");
        snprintf(node[i].devices, sizeof node[i].devices, "tcp/eth0");
        node[i].meet = (nodes_interface_t){.name = "eth0", .prefix = 24, .mbit = 10000, .mtu = 1500, .device = 1};
        snprintf(node[i].meet.address, sizeof node[i].meet.address, "10.0.0.%d", i + 1);
        node[i].at = (rd_addr_t){.ip = {10, 0, 0, (unsigned char)(i + 1)}, .port = {0x9c, 0x40}, .family = 4};
    }
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++)
            *nodes_way(&view, a, b) = (nodes_way_t){.stage = WAY_DONE, .us = 30 * noise(), .gbps = 1.1 * noise()};
}

static void look(void)
{
    said[0] = '\0';
    memset(counts, 0, sizeof counts);
    doctor_find_setup(&view);
    doctor_find_blocked(&view);
    doctor_find_slow(&view);
    doctor_find_lost(&view);
}

static void rate(int from, int to, double gbps)
{
    nodes_way(&view, from, to)->gbps = gbps * noise();
}

/* There is one fault, which is said in these words. */
static void expect(const char *words)
{
    look();
    CHECK(counts[INFO_WRONG] == 1 && counts[INFO_NOTE] == 0, "%d wrong, %d to note:\n%s", counts[INFO_WRONG],
          counts[INFO_NOTE], said);
    CHECK(strstr(said, words), "nobody says \"%s\":\n%s", words, said);
}

static void without_fault(void)
{
    check_now = "no fault";
    for (int n = 2; n <= MOST; n++)
        for (unsigned seed = 1; seed <= 50; seed++) {
            make(n, seed);
            look();
            CHECK(counts[INFO_WRONG] == 0 && counts[INFO_NOTE] == 0, "%d nodes, seed %u:\n%s", n, seed, said);
        }
}

static void slow(void)
{
    for (int n = 3; n <= MOST; n++)
        for (unsigned seed = 1; seed <= 20; seed++) {
            int a = (int)seed % n, b = (a + 1 + (int)seed / 3 % (n - 1)) % n;
            char words[80];
            if (n > 3) {
                check_now = "a link";
                make(n, seed);
                rate(a, b, 0.1);
                rate(b, a, 0.1);
                snprintf(words, sizeof words, "2 slow link: n%d and n%d have", a < b ? a : b, a < b ? b : a);
                expect(words);
            }
            check_now = "a direction";
            make(n, seed);
            rate(a, b, 0.1);
            snprintf(words, sizeof words, "2 slow direction: from n%d to n%d there are", a, b);
            expect(words);
            check_now = "a node";
            make(n, seed);
            for (int i = 0; i < n; i++) {
                rate(a, i, 0.1);
                rate(i, a, 0.1);
            }
            snprintf(words, sizeof words, "2 slow node: n%d has at most 0.", a);
            expect(words);
            check_now = "a node that sends";
            make(n, seed);
            for (int i = 0; i < n; i++)
                rate(a, i, 0.1);
            snprintf(words, sizeof words, "2 slow node: n%d sends at most 0.", a);
            expect(words);
            check_now = "a node with delays";
            make(n, seed);
            for (int i = 0; i < n; i++)
                nodes_way(&view, a, i)->us = nodes_way(&view, i, a)->us = 300 * noise();
            snprintf(words, sizeof words, "2 slow node: n%d has at least ", a);
            expect(words);
        }
}

static void two_alone(void)
{
    check_now = "two nodes";
    make(2, 1);
    rate(1, 0, 0.1);
    expect("2 slow direction: from n1 to n0 there are");
    make(2, 1);
    rate(0, 1, 0.1);
    rate(1, 0, 0.1);
    look();
    CHECK(counts[INFO_WRONG] == 0 && strstr(said, "1 rate: ") && strstr(said, "the interfaces have 10000 Mbit/s"), "%s",
          said);
}

static void blocked(void)
{
    check_now = "blocked";
    make(4, 1);
    *nodes_way(&view, 1, 2) = (nodes_way_t){.stage = WAY_BLOCKED, .error = ETIMEDOUT};
    nodes_way(&view, 2, 1)->stage = WAY_UNTRIED;
    expect("n1 cannot connect to n2 at 10.0.0.3:40000 (eth0): nothing answers within 3 s");
    nodes_way(&view, 1, 2)->error = ECONNREFUSED;
    expect("n1 cannot connect to n2 at 10.0.0.3:40000 (eth0): Connection refused");
    make(4, 1);
    for (int i = 0; i < 4; i++) {
        *nodes_way(&view, i, 3) = (nodes_way_t){.stage = WAY_BLOCKED, .error = ETIMEDOUT};
        nodes_way(&view, 3, i)->stage = WAY_UNTRIED;
    }
    expect("no node can connect to n3 at 10.0.0.4:40000");
    make(3, 1);
    nodes_way(&view, 0, 1)->stage = nodes_way(&view, 1, 0)->stage = WAY_NO_START;
    nodes_way(&view, 0, 1)->text = nodes_way(&view, 1, 0)->text = (char *)(size_t) "the words";
    expect("n0 (eth0, MTU 1500) and n1 (eth0, MTU 1500) cannot make a communicator: the words");
    CHECK(strstr(said, "UCX_TCP_PORT_RANGE"), "%s", said);
    nodes_way(&view, 0, 1)->text =
        (char *)(size_t) "ranks differ in RONDO_TRANSPORT: rank 0 (n0:1) has 'ofi', rank 1 ...";
    snprintf(node[0].version, sizeof node[0].version, "libfabric 1.17");
    look();
    CHECK(counts[INFO_WRONG] == 1 && counts[INFO_NOTE] == 1 && !strstr(said, "RANGE") &&
              strstr(said, "rank 1 ... -> the same on all nodes: `mpirun -x NAME`") &&
              strstr(said, "n0 has libfabric 1.17, n1 has ucx 1.13.1 -> RONDO_TRANSPORT chooses the library"),
          "%s", said);
    make(3, 1);
    snprintf(node[2].version, sizeof node[2].version, "ucx 1.22.0");
    look();
    CHECK(counts[INFO_NOTE] == 1 && strstr(said, "n2 has ucx 1.22.0 -> load the same version"), "%s", said);
    make(3, 1);
    nodes_way(&view, 0, 1)->stage = nodes_way(&view, 1, 0)->stage = WAY_NO_LARGE;
    expect("pass short messages, but long ones stall -> a switch or tunnel");
    node[1].meet.mtu = 9000;
    look();
    CHECK(counts[INFO_WRONG] == 1 && counts[INFO_NOTE] == 1 && strstr(said, "long ones stall -> one MTU"), "%s", said);
}

static void setup(void)
{
    check_now = "setup";
    make(3, 1);
    snprintf(node[2].meet.name, sizeof node[2].meet.name, "docker0");
    node[2].fastest = node[1].meet;
    node[2].meet.mbit = -1;
    expect("n2 would meet the others on docker0, 10.0.0.3, which is made for what runs inside that host -> "
           "RONDO_IFACE=eth0");
    make(3, 1);
    node[1].meet.loopback = 1;
    expect("n1 would meet the others on eth0, 10.0.0.2, which no other host reaches");
    make(3, 1);
    memcpy(node[2].meet.address, node[0].meet.address, sizeof node[2].meet.address);
    expect("n0 and n2 both have 10.0.0.1");
    make(3, 1);
    snprintf(node[1].meet.address, sizeof node[1].meet.address, "10.1.0.2");
    look();
    CHECK(counts[INFO_WRONG] == 0 && strstr(said, "1 networks: n0 is on 10.0.0.1/24 (eth0), but n1 on 10.1.0.2/24"),
          "%s", said);
    make(4, 1);
    node[0].meet.mtu = -1; /* unknown, as of an address that no interface shows */
    look();
    CHECK(counts[INFO_WRONG] == 0 && counts[INFO_NOTE] == 0 && strstr(said, "MTU: 1500 where it is known"), "%s", said);
    node[2].meet.mtu = 9000;
    look();
    CHECK(counts[INFO_NOTE] == 1 && strstr(said, "MTU: eth0 of n1 has 1500, eth0 of n2 has 9000"), "%s", said);
    node[1].meet.mtu = node[2].meet.mtu = node[3].meet.mtu = -1;
    look();
    CHECK(counts[INFO_NOTE] == 0 && !strstr(said, "MTU: "), "%s", said);
    make(3, 1);
    node[1].fastest = (nodes_interface_t){.name = "eth1", .address = "10.9.0.2", .prefix = 24, .mbit = 100000};
    look();
    CHECK(counts[INFO_WRONG] == 0 && strstr(said, "but has eth1, 10.9.0.2, of 100000 Mbit/s -> RONDO_IFACE=eth1"), "%s",
          said);
    make(3, 1);
    for (int i = 0; i < 2; i++)
        snprintf(node[i].devices, sizeof node[i].devices, "rc_mlx5/mlx5_0:1");
    expect("n1 would use rc_mlx5/mlx5_0:1, but n2 only tcp/eth0");
    make(3, 1);
    snprintf(node[1].devices, sizeof node[1].devices, "net/eth0");
    look();
    CHECK(counts[INFO_WRONG] == 0 && !strstr(said, "devices: "), "%s", said);
    make(3, 1);
    node[0].gpus = node[1].gpus = 8;
    node[0].gdr = node[1].gdr = node[1].cuda = 1;
    look();
    CHECK(counts[INFO_WRONG] == 0 &&
              strstr(said, "on 1 of 2 nodes with GPUs: on n0 the transports take no device memory"),
          "%s", said);
    node[0].cuda = 1;
    look();
    CHECK(counts[INFO_NOTE] == 0 && strstr(said, "yes, directly"), "%s", said);
}

/* On one machine a slow link may be a busy core. */
static void shared(void)
{
    check_now = "one machine";
    make(4, 1);
    for (int i = 0; i < 4; i++)
        node[i].shared = 1;
    rate(0, 1, 0.3);
    look();
    CHECK(counts[INFO_WRONG] == 0 && counts[INFO_NOTE] == 1, "%s", said);
    rate(0, 1, 0.02);
    look();
    CHECK(counts[INFO_WRONG] == 1 && strstr(said, "from n0 to n1"), "%s", said);
    for (int i = 0; i < 4; i++)
        node[i].played = 1;
    look();
    CHECK(counts[INFO_WRONG] == 0 && strstr(said, "times are not judged"), "%s", said);
}

static void resent(int from, int to, double part)
{
    nodes_way(&view, from, to)->resent = part;
}

static void lost_is(int notes, const char *words)
{
    look();
    CHECK(counts[INFO_WRONG] == 0 && counts[INFO_NOTE] == notes && strstr(said, words), "%d to note:\n%s",
          counts[INFO_NOTE], said);
}

static void lost(void)
{
    check_now = "lost packets";
    make(4, 1);
    resent(0, 1, 0.009); /* a full switch */
    lost_is(0, "");
    resent(0, 1, 0.05);
    lost_is(1, "of what n0 sends to n1 5.0 % is sent again -> ");
    resent(2, 1, 0.02);
    lost_is(2, "of what n2 sends to n1 2.0 %");
    resent(3, 1, 0.03);
    lost_is(1, "of what n1 gets from every other node up to 5.0 % is sent again");
    make(4, 2);
    for (int i = 0; i < 3; i++)
        resent(3, i, 0.1 + 0.1 * i);
    lost_is(1, "of what n3 sends to every other node up to 30.0 %");
    make(2, 3);
    resent(1, 0, 0.2);
    lost_is(1, "of what n1 sends to n0 20.0 %");
    make(8, 4);
    for (int i = 0; i < 8; i++)
        for (int k = 2; k < 4; k++)
            resent(i, (i + k) % 8, 0.02);
    lost_is(9, "16 ways in all lose packets");
    make(4, 5);
    rate(2, 0, 0.1);
    resent(2, 0, 0.08);
    look();
    CHECK(counts[INFO_WRONG] == 1 && counts[INFO_NOTE] == 1 && strstr(said, "2 slow direction: from n2 to n0 ") &&
              strstr(said, "; 8.0 % of it is sent again -> "),
          "%s", said);
}

static void segments(void)
{
    char name[] = "/tmp/rondo-snmp-XXXXXX";
    nodes_segments_t before, after;
    int fd = mkstemp(name);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

    if (!f)
        exit(1);
    fprintf(f,
            "Ip: Forwarding OutSegs\nIp: 1 7\nTcp: RtoMin MaxConn InSegs OutSegs RetransSegs\nTcp: 200 -1 9 5000 40\n");
    fclose(f);
    CHECK(doctor_segments(name, &before) && before.sent == 5000 && before.resent == 40, "%lld %lld",
          (long long)before.sent, (long long)before.resent);
    after = (nodes_segments_t){15000, 140};
    CHECK(doctor_resent(&before, &after) == 0.01, "%g", doctor_resent(&before, &after));
    after = (nodes_segments_t){5200, 60}; /* too few to tell */
    CHECK(doctor_resent(&before, &after) == 0, "%g", doctor_resent(&before, &after));
    f = fopen(name, "w");
    fprintf(f, "Tcp: RtoMin OutSegs\nTcp: 200 5000\n");
    fclose(f);
    CHECK(!doctor_segments(name, &before) && !doctor_segments("/none", &before), "a file that does not say it");
    unlink(name);
}

static void tournament(void)
{
    check_now = "tournament";
    for (int n = 1; n <= MOST; n++) {
        int met[MOST][MOST] = {{0}};
        for (int round = 0; round < doctor_rounds(n); round++)
            for (int i = 0; i < n; i++) {
                int other = doctor_opponent(n, round, i);
                CHECK(other < n && other != i && (other < 0 || doctor_opponent(n, round, other) == i),
                      "%d of %d meets %d in round %d", i, n, other, round);
                if (other >= 0 && other < n)
                    met[i][other]++;
            }
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                CHECK(met[i][j] == (i != j), "of %d, %d and %d meet %d times", n, i, j, met[i][j]);
    }
}

int main(void)
{
    tournament();
    without_fault();
    slow();
    two_alone();
    blocked();
    setup();
    shared();
    lost();
    segments();
    return failures != 0;
}
