/* See ras_wire.h. */
#include "monitor/ras_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/wait.h"

#define AEAD(name) crypto_aead_xchacha20poly1305_ietf_##name
#define SEALED (1 + RD_WIRE_RECORD + AEAD(ABYTES))

typedef struct hello {
    unsigned char magic[8], version, key[32];
} hello_t;

typedef struct reply {
    unsigned char key[32], proof[32];
} reply_t;

_Static_assert(sizeof(hello_t) == 41 && sizeof(reply_t) == 64, "bytes alone, so that they are sent as they are");

/* ---- the secret ---- */

static const char *read_secret(int fd, rd_wire_secret_t *secret)
{
    unsigned char bytes[4096];
    struct stat st;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return "it is no file";
    if (st.st_uid != geteuid() || (st.st_mode & 077) != 0)
        return "it must be the user's own, with mode 0600";
    ssize_t n = read(fd, bytes, sizeof bytes);
    bool enough = n >= RD_WIRE_LEAST;
    if (enough)
        crypto_generichash(secret->bytes, sizeof secret->bytes, bytes, (size_t)n, NULL, 0);
    sodium_memzero(bytes, sizeof bytes); /* of a short one, too */
    return enough ? NULL : "it has less than 32 bytes: head -c 32 /dev/urandom makes good ones";
}

const char *rd_wire_secret(rd_wire_secret_t *secret, const char *path)
{
    if (sodium_init() < 0)
        return "libsodium finds no source of random numbers";
    int fd = rd_fd_high(open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (fd < 0)
        return rd_fd_strerror(errno);
    const char *why = read_secret(fd, secret);
    close(fd);
    return why;
}

void rd_wire_forget(rd_wire_secret_t *secret)
{
    sodium_memzero(secret, sizeof *secret);
}

/* ---- bytes ---- */

static bool wait_for(const rd_wire_t *wire, short events)
{
    struct pollfd p = {.fd = wire->fd, .events = events};
    int n;

    do
        n = rd_clock_ms() < wire->until_ms ? poll(&p, 1, wire->idle_ms) : 0;
    while (n < 0 && errno == EINTR);
    return n == 1;
}

static bool send_all(const rd_wire_t *wire, const void *bytes, size_t n)
{
    for (const char *at = bytes; n > 0;) {
        ssize_t sent = send(wire->fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            at += sent;
            n -= (size_t)sent;
        } else if ((errno != EAGAIN && errno != EINTR) || !wait_for(wire, POLLOUT)) {
            return false;
        }
    }
    return true;
}

static bool receive_all(const rd_wire_t *wire, void *bytes, size_t n)
{
    for (char *at = bytes; n > 0;) {
        ssize_t got = recv(wire->fd, at, n, MSG_DONTWAIT);
        if (got > 0) {
            at += got;
            n -= (size_t)got;
        } else if (got == 0 || (errno != EAGAIN && errno != EINTR) || !wait_for(wire, POLLIN)) {
            return false;
        }
    }
    return true;
}

/* ---- the handshake ---- */

/* Returns false for a public key that agrees with every secret one. */
static bool agree(rd_wire_t *wire, const unsigned char own[32], const unsigned char server[32],
                  const unsigned char client[32], const unsigned char other[32], const rd_wire_secret_t *secret)
{
    unsigned char shared[32];
    crypto_generichash_state state;

    if (crypto_scalarmult(shared, own, other) != 0)
        return false;
    crypto_generichash_init(&state, secret->bytes, sizeof secret->bytes, sizeof wire->key);
    crypto_generichash_update(&state, (const unsigned char *)RD_WIRE_MAGIC, sizeof RD_WIRE_MAGIC);
    crypto_generichash_update(&state, shared, sizeof shared);
    crypto_generichash_update(&state, server, 32);
    crypto_generichash_update(&state, client, 32);
    crypto_generichash_final(&state, wire->key, sizeof wire->key);
    sodium_memzero(shared, sizeof shared);
    return true;
}

static void prove(const rd_wire_t *wire, unsigned char proof[32])
{
    static const char label[] = "rondo-ras client";

    crypto_auth_hmacsha256(proof, (const unsigned char *)label, sizeof label, wire->key);
}

static const char *serve(rd_wire_t *wire, const unsigned char own[32], const hello_t *hello,
                         const rd_wire_secret_t *secret)
{
    unsigned char proof[32];
    reply_t reply;

    if (!send_all(wire, hello, sizeof *hello) || !receive_all(wire, &reply, sizeof reply))
        return "it says nothing";
    if (!agree(wire, own, hello->key, reply.key, reply.key, secret))
        return "its key is none";
    prove(wire, proof);
    if (sodium_memcmp(proof, reply.proof, sizeof proof) != 0)
        return "it does not have the secret of RONDO_RAS_KEY";
    return rd_wire_send(wire, RD_WIRE_HELLO, NULL, 0) ? NULL : "it does not listen";
}

static void begin(rd_wire_t *wire, int fd, int64_t ms)
{
    wire->fd = fd;
    wire->until_ms = rd_clock_ms() + ms;
    wire->idle_ms = RD_WIRE_IDLE_MS;
    wire->records = 0;
}

const char *rd_wire_serve(rd_wire_t *wire, int fd, const rd_wire_secret_t *secret, int64_t ms)
{
    hello_t hello = {.version = RD_WIRE_VERSION};
    unsigned char own[32];

    memcpy(hello.magic, RD_WIRE_MAGIC, sizeof hello.magic);
    begin(wire, fd, ms < RD_WIRE_PROVE_MS ? ms : RD_WIRE_PROVE_MS); /* nobody knows yet who it is */
    crypto_box_keypair(hello.key, own);
    const char *why = serve(wire, own, &hello, secret);
    sodium_memzero(own, sizeof own);
    wire->until_ms = rd_clock_ms() + ms;
    return why;
}

static const char *ask(rd_wire_t *wire, const unsigned char own[32], reply_t *reply, const rd_wire_secret_t *secret)
{
    char bytes[RD_WIRE_RECORD];
    hello_t hello;
    size_t n;

    wire->idle_ms = RD_WIRE_GREETING_MS;
    if (!receive_all(wire, &hello, sizeof hello))
        return "nobody answers there, or it is busy";
    wire->idle_ms = RD_WIRE_IDLE_MS;
    if (memcmp(hello.magic, RD_WIRE_MAGIC, sizeof hello.magic) != 0)
        return "no process of rondo listens there";
    if (hello.version != RD_WIRE_VERSION)
        return "the process there is of another version of rondo";
    if (!agree(wire, own, hello.key, reply->key, hello.key, secret))
        return "no process of rondo listens there";
    prove(wire, reply->proof);
    if (!send_all(wire, reply, sizeof *reply) || rd_wire_receive(wire, bytes, &n) != RD_WIRE_HELLO)
        return "it has refused: its RONDO_RAS_KEY is another one";
    return NULL;
}

const char *rd_wire_ask(rd_wire_t *wire, int fd, const rd_wire_secret_t *secret, int64_t ms)
{
    unsigned char own[32];
    reply_t reply;

    begin(wire, fd, ms);
    crypto_box_keypair(reply.key, own);
    const char *why = ask(wire, own, &reply, secret);
    sodium_memzero(own, sizeof own);
    return why;
}

void rd_wire_end(rd_wire_t *wire)
{
    sodium_memzero(wire, sizeof *wire);
}

/* ---- records ---- */

static void next_nonce(rd_wire_t *wire, unsigned char nonce[AEAD(NPUBBYTES)])
{
    memset(nonce, 0, AEAD(NPUBBYTES));
    for (int i = 0; i < 8; i++)
        nonce[i] = (unsigned char)(wire->records >> 8 * i);
    wire->records++;
}

bool rd_wire_send(rd_wire_t *wire, int what, const void *bytes, size_t n)
{
    unsigned char plain[1 + RD_WIRE_RECORD], sealed[4 + SEALED], nonce[AEAD(NPUBBYTES)];
    unsigned long long length;

    plain[0] = (unsigned char)what;
    if (n)
        memcpy(plain + 1, bytes, n);
    next_nonce(wire, nonce);
    AEAD(encrypt)(sealed + 4, &length, plain, 1 + n, NULL, 0, NULL, nonce, wire->key);
    for (int i = 0; i < 4; i++)
        sealed[i] = (unsigned char)(length >> 8 * i);
    return send_all(wire, sealed, 4 + (size_t)length);
}

int rd_wire_receive(rd_wire_t *wire, void *bytes, size_t *n)
{
    unsigned char plain[1 + RD_WIRE_RECORD], sealed[SEALED], head[4], nonce[AEAD(NPUBBYTES)];
    unsigned long long length;

    if (!receive_all(wire, head, sizeof head))
        return 0;
    size_t bound = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
    if (bound < 1 + AEAD(ABYTES) || bound > sizeof sealed || !receive_all(wire, sealed, bound))
        return 0;
    next_nonce(wire, nonce);
    if (AEAD(decrypt)(plain, &length, NULL, sealed, bound, NULL, 0, nonce, wire->key) != 0)
        return 0;
    *n = (size_t)length - 1;
    memcpy(bytes, plain + 1, *n);
    return plain[0];
}
