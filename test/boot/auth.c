/* The handshake and the records, bit by bit: the right ones pass; one flipped bit anywhere, a reflected or replayed
 * proof, another secret, another address, a record repeated, dropped, swapped, turned round or too long does not. What
 * a hello can show by itself (form, version, purpose, role, job) is refused there and then. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot/auth.h"

static int failures;

static void expect(int good, const char *what, int i)
{
    if (good)
        return;
    printf("%s (%d)\n", what, i);
    failures++;
}

static void begin(rd_auth_t *a, int server, int secret, int port)
{
    rd_creds_t creds;
    rd_hello_t mine = {.purpose = RD_FOR_NEIGHBOUR, .rank = server ? 3 : 2, .nranks = 7, .slot = 1};
    rd_addr_t addr = rd_addr_loopback(4);
    memset(&creds, 7, sizeof(creds));
    creds.secret[0] = (unsigned char)secret;
    addr.port[1] = (unsigned char)port;
    rd_auth_begin(a, &creds, server, &addr, sizeof(addr), &mine);
}

/* 0: both are convinced. `flip`: a bit of the three messages, -1: none. */
static int shake(rd_auth_t *client, rd_auth_t *server, int flip, int reflect)
{
    unsigned char wire[2 * RD_HELLO + 2 * RD_PROOF], *at = wire;
    rd_hello_t theirs;
    memcpy(at, client->hello[0], RD_HELLO);
    if (flip >= 0 && flip < 8 * RD_HELLO)
        at[flip / 8] ^= (unsigned char)(1 << flip % 8);
    if (rd_auth_hello(server, at, &theirs) != 0)
        return -1;
    at += RD_HELLO;
    memcpy(at, server->hello[1], RD_HELLO);
    rd_auth_prove(server, at + RD_HELLO);
    if (flip >= 8 * RD_HELLO && flip < 8 * (2 * RD_HELLO + RD_PROOF))
        wire[flip / 8] ^= (unsigned char)(1 << flip % 8);
    if (rd_auth_hello(client, at, &theirs) != 0 || rd_auth_check(client, at + RD_HELLO) != 0)
        return -1;
    unsigned char *proof = at + RD_HELLO + RD_PROOF;
    rd_auth_prove(client, proof);
    if (reflect)
        memcpy(proof, at + RD_HELLO, RD_PROOF);
    if (flip >= 8 * (2 * RD_HELLO + RD_PROOF))
        wire[flip / 8] ^= (unsigned char)(1 << flip % 8);
    if (rd_auth_check(server, proof) != 0)
        return -1;
    rd_auth_keys(client);
    rd_auth_keys(server);
    return theirs.rank == 3 && theirs.nranks == 7 && theirs.slot == 1 ? 0 : -1;
}

static void handshakes(void)
{
    rd_auth_t client, server;
    for (int flip = -1; flip < 8 * (2 * RD_HELLO + 2 * RD_PROOF); flip++) {
        begin(&client, 0, 1, 80);
        begin(&server, 1, 1, 80);
        expect((shake(&client, &server, flip, 0) == 0) == (flip == -1), "handshake with a bit flipped", flip);
    }
    begin(&client, 0, 1, 80);
    begin(&server, 1, 1, 80);
    expect(shake(&client, &server, -1, 1) != 0, "a reflected proof", 0);
    begin(&client, 0, 1, 80);
    begin(&server, 1, 2, 80);
    expect(shake(&client, &server, -1, 0) != 0, "another secret", 0);
    begin(&client, 0, 1, 81);
    begin(&server, 1, 1, 80);
    expect(shake(&client, &server, -1, 0) != 0, "another address", 0);
}

/* Without any proof. */
static void hellos(void)
{
    rd_auth_t client, server;
    rd_hello_t theirs;
    for (int flip = -1; flip < 8 * 24; flip++) {
        begin(&client, 0, 1, 80);
        begin(&server, 1, 1, 80);
        if (flip >= 0)
            client.hello[0][flip / 8] ^= (unsigned char)(1 << flip % 8);
        expect((rd_auth_hello(&server, client.hello[0], &theirs) == 0) == (flip == -1), "hello with a bit flipped",
               flip);
        for (size_t have = 0; flip >= 0 && have <= 24; have++)
            expect(rd_auth_plausible(&server, client.hello[0], have) == (have <= (size_t)flip / 8),
                   "the first bytes of a hello", (int)have);
    }
    begin(&server, 1, 1, 80);
    expect(rd_auth_hello(&server, server.hello[1], &theirs) != 0, "a hello sent back to its sender", 0);
}

/* All that a client said once, said again to the same server: its nonce is another one. */
static void replay(void)
{
    unsigned char proof[RD_PROOF];
    rd_auth_t client, server;
    rd_hello_t theirs;
    begin(&client, 0, 1, 80);
    begin(&server, 1, 1, 80);
    expect(shake(&client, &server, -1, 0) == 0, "handshake", 0);
    rd_auth_prove(&client, proof);
    begin(&server, 1, 1, 80);
    expect(rd_auth_hello(&server, client.hello[0], &theirs) == 0, "a replayed hello", 0);
    expect(rd_auth_check(&server, proof) != 0, "a replayed proof", 0);
}

static size_t seal(rd_auth_t *a, const char *text, unsigned char *record)
{
    rd_auth_seal(a, RD_HELLO, text, strlen(text), record);
    return rd_auth_length(record);
}

static void records(void)
{
    rd_auth_t client, server, copy;
    unsigned char first[256], second[256];
    int type;
    begin(&client, 0, 1, 80);
    begin(&server, 1, 1, 80);
    expect(shake(&client, &server, -1, 0) == 0, "handshake", 0);
    size_t bytes = seal(&client, "hello", first);
    seal(&client, "world", second);
    for (size_t i = 32; i < 8 * bytes; i++) { /* the length comes first: a wrong one is another record's */
        copy = server;
        first[i / 8] ^= (unsigned char)(1 << i % 8);
        expect(rd_auth_open(&copy, first, &type) != 0, "record with a bit flipped", (int)i);
        first[i / 8] ^= (unsigned char)(1 << i % 8);
    }
    copy = server;
    expect(rd_auth_open(&copy, second, &type) != 0, "a record dropped", 0);
    expect(rd_auth_open(&server, first, &type) == 0 && memcmp(first + RD_RECORD_HEAD, "hello", 5) == 0, "record", 1);
    copy = server;
    expect(rd_auth_open(&copy, first, &type) != 0, "a record repeated", 0);
    expect(rd_auth_open(&server, second, &type) == 0, "record", 2);
    begin(&client, 0, 1, 80);
    begin(&server, 1, 1, 80);
    shake(&client, &server, -1, 0);
    seal(&client, "mine", first);
    expect(rd_auth_open(&client, first, &type) != 0, "a record sent back to its sender", 0);
    memset(first, 0xff, sizeof(first));
    expect(rd_auth_length(first) == 0, "a record of 4 GB", 0);
    memset(first, 0, RD_RECORD_HEAD);
    first[0] = RD_RECORD_DATA & 255;
    first[1] = RD_RECORD_DATA >> 8;
    expect(rd_auth_length(first) == RD_RECORD_MOST, "the longest record", 0);
    first[0]++;
    expect(rd_auth_length(first) == 0, "a record one byte too long", 0);
}

int main(void)
{
    alarm(30);
    if (sodium_init() < 0)
        return 1;
    handshakes();
    hellos();
    replay();
    records();
    return failures != 0;
}
