#!/bin/sh
# Every defence of the bootstrap and of the monitor is taken out, one at a time, and the test that is named beside it
# must then fail. From a build folder in which the tests are built (make check TESTS=):
#
#   ../test/fault/mutants.sh [PATTERN]        only those whose line matches it
#
# A line: what is taken out @ file of lib @ the sed command that does it @ tests, of which one must fail.
# shellcheck disable=SC2086 # compilers, flags and lists of objects are several words
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
missed=0 tried=0
includes="-I $tmp/lib -I $here/lib -I $here/test -I ."
cc=$(sed -n 's/^CC = //p' Makefile)
flags=$(sed -n 's/^SODIUM_CFLAGS = //p' Makefile)
parts=$(sed -n 's/^cuda_library = //p;s/^CUDA_LIBS = //p' Makefile)
mkdir -p "$tmp/lib/boot" "$tmp/lib/node" "$tmp/lib/monitor"

# The test $1 with the changed file $2 in place of the library's own: what is linked first counts. boot/peers includes
# the sources whose functions it calls.
build() {
    objects="test/$1.o $tmp/changed.o"
    if [ "$1" = boot/peers ]; then
        $cc -g -O2 -std=gnu11 -w $includes $flags -c "$here/test/boot/peers.c" -o "$tmp/peers.o" || return 2
        objects=$tmp/peers.o
        case $2 in boot/rendezvous.c | boot/join.c) ;; *) objects="$objects $tmp/changed.o" ;; esac
    fi
    case $1 in monitor/*) objects="$objects libtest_parts.la" ;; esac
    ./libtool --silent --tag=CC --mode=link $cc -g -o "$tmp/test.out" $objects librondo_core.la $parts -lm
}

while IFS='@' read -r what file change tests; do
    case $what in '' | '#'*) continue ;; esac
    case "$what@$file@$tests" in *"${1:-}"*) ;; *) continue ;; esac
    tried=$((tried + 1)) caught=
    rm -f "$tmp"/lib/*/*.c
    sed "$change" "$here/lib/$file" >"$tmp/lib/$file"
    if cmp -s "$here/lib/$file" "$tmp/lib/$file"; then
        echo "mutants: FAILED: $what: nothing in lib/$file is changed by $change"
        missed=$((missed + 1))
        continue
    fi
    $cc -g -O2 -std=gnu11 -w -D_GNU_SOURCE= $includes $flags -c "$tmp/lib/$file" -o "$tmp/changed.o" || exit 2
    for test in $tests; do
        build "$test" "$file" || exit 2
        timeout 60 "$tmp/test.out" >"$tmp/said" 2>&1 || { caught=$test; break; }
    done
    if [ "$caught" ]; then
        echo "mutants: $what: $caught fails"
    else
        echo "mutants: FAILED: $what: no test notices ($tests)"
        missed=$((missed + 1))
    fi
done <<'END'
the version of a hello@boot/auth.c@s/return memcmp(bytes, expect, have/expect[4] = have > 4 ? bytes[4] : 0; &/@boot/auth
what may be a hello@boot/auth.c@s/return memcmp(bytes, expect, have < 24 ? have : 24) == 0;/return 1;/@boot/auth
its purpose@boot/auth.c@s/return memcmp(bytes, expect, have/expect[5] = have > 5 ? bytes[5] : 0; &/@boot/auth
its role@boot/auth.c@s/return memcmp(bytes, expect, have/expect[6] = have > 6 ? bytes[6] : 0; &/@boot/auth
its job@boot/auth.c@s/have < 24 ? have : 24/have < 8 ? have : 8/@boot/auth
a nonce in each hello@boot/auth.c@s/randombytes_buf(hello + 24, 16);/;/@boot/auth
the proof@boot/auth.c@s/return sodium_memcmp(expect, proof, RD_PROOF);/return 0;/@boot/auth
the role in the proof@boot/auth.c@s/"server proof"/"proof"/g;s/"client proof"/"proof"/g@boot/auth
the hellos in the proof@boot/auth.c@s/memcpy(text, a->hello, 2 \* RD_HELLO);/memset(text, 0, 2 * RD_HELLO);/@boot/auth
the address in the proof@boot/auth.c@s/memcpy(text + 2 \* RD_HELLO, a->endpoint, RD_ENDPOINT);/memset(text + 2 * RD_HELLO, 0, RD_ENDPOINT);/@boot/auth
the secret in the proof@boot/id.c@s/crypto_auth_hmacsha256_init(&state, creds->secret, sizeof(creds->secret));/crypto_auth_hmacsha256_init(\&state, creds->job, sizeof(creds->job));/@boot/auth
the MAC of a record@boot/auth.c@s/if (sodium_memcmp(mac, record + signed_bytes, RD_PROOF) != 0)/if (0)/@boot/auth
the counter in the MAC@boot/auth.c@s/put32(number, (uint32_t)count);/put32(number, 0);/@boot/auth
a key for each direction@boot/auth.c@s/"key from client"/"key"/;s/"key from server"/"key"/@boot/auth
the length of a record@boot/auth.c@s/return bytes > RD_RECORD_DATA ? 0 : /return /@boot/auth
a wrong hello ends the connection@boot/session.c@s/if (!rd_auth_plausible(&c->auth, c->in, c->in_have) ||/if (0 \&\&/@boot/listener
a wrong proof ends the connection@boot/session.c@s/    if (rd_auth_check(&c->auth, c->in) != 0)/    if (0)/@boot/listener
no memory before the proof@boot/session.c@s/c->in = c->early;/c->in = malloc(RD_RECORD_MOST);/@boot/listener
a forged record ends the connection@boot/session.c@/rd_auth_open(&c->auth, c->in, type) != 0/,/}/s/die(c, EPROTO);/;/@boot/listener
a long record ends the connection@boot/session.c@/if (length == 0) {/,/}/s/die(c, EPROTO);/;/@boot/listener
the bound on pending connections@boot/listener.c@s/if (d->npending == RD_LISTENER_MOST)/if (0)/;s/for (int i = 0; i < ACCEPTS/for (int i = 0; i < (d->npending < RD_LISTENER_MOST ? ACCEPTS : 0)/@boot/listener
who goes first when the listener is full@boot/listener.c@s/if (d->pending\[i\]->state == RD_CHAN_HELLO)/if (0)/@boot/listener
the time that a pending connection has@boot/listener.c@s/now - c->since_ms > (c->state == RD_CHAN_PROOF ? RD_LISTENER_PROOF_MS : RD_LISTENER_MS)/0/@boot/listener
a flood in turns@boot/listener.c@s/i < ACCEPTS && let_in(d)/let_in(d)/@boot/listener
a pending descriptor when none is left@boot/listener.c@s/rd_fd_none_left(error)/0/@boot/listener
a rank number out of range@boot/rendezvous_hear.c@s/else if (rank < 0 || rank >= nranks)/else if (0)/@boot/wrong
a rank number claimed twice@boot/rendezvous_hear.c@s/else if (m->by_rank\[rank\] >= 0)/else if (0)/@boot/wrong
unequal numbers of ranks@boot/rendezvous_hear.c@s/if (first && nranks != m->nranks)/if (0)/@boot/wrong
the greatest number of ranks@boot/rendezvous_hear.c@s/nranks <= RD_MOST_RANKS ? malloc(n \* sizeof(int)) : NULL/malloc(n * sizeof(int))/@boot/peers
a member that joins twice@boot/rendezvous_hear.c@s/if (bytes != sizeof(g->join) || g->joined)/if (bytes != sizeof(g->join))/@boot/peers
the length of a JOIN@boot/rendezvous_hear.c@s/if (bytes != sizeof(g->join) || g->joined)/if (g->joined)/@boot/peers
READY before the table@boot/rendezvous_hear.c@s/type == RD_REC_READY && g->notified && !g->ready/type == RD_REC_READY \&\& !g->ready/@boot/peers
READY twice@boot/rendezvous_hear.c@s/type == RD_REC_READY && g->notified && !g->ready/type == RD_REC_READY \&\& g->notified/@boot/peers
the length of a FAIL, at the rendezvous@boot/rendezvous_hear.c@s/type == RD_REC_FAIL && bytes == sizeof(said) && g->joined/type == RD_REC_FAIL \&\& g->joined/@boot/peers
an address that was not asked for@boot/rendezvous_hear.c@s/bytes == sizeof(rd_addr_t) && g->moving/bytes == sizeof(rd_addr_t)/@boot/peers
the length of a table@boot/join.c@s/if (bytes != sizeof(rd_salt_t) + (size_t)b->rounds \* sizeof(rd_contact_t))/if (0)/@boot/peers
the length of a FAIL, at a rank@boot/join.c@s/if (bytes != sizeof(said))/if (0)/@boot/peers
a neighbour's slot@boot/join.c@s/k >= 0 &&/1 \&\&/;s/k < b->rounds &&/1 \&\&/@boot/peers
a neighbour's rank@boot/join.c@s/((int64_t)c->theirs.rank + (1 << k)) % b->nranks == b->rank/1/@boot/peers
a neighbour's number of ranks@boot/join.c@s/c->theirs.nranks == b->nranks/1/@boot/peers
a neighbour that is there already@boot/join.c@s/b->rank && !b->to\[k\].chan/b->rank/@boot/peers
the length of an exchange@boot/allgather.c@s/type == RD_REC_DATA && bytes <= r->in_left/type == RD_REC_DATA/@boot/peers
the length of a farewell@boot/leave.c@s/if (bytes < SHORT || bytes >= sizeof said)/if (0)/@boot/peers
the failed rank in a farewell@boot/leave.c@s/said.failed_rank >= 0 \&\& said.failed_rank < b->nranks ? said.failed_rank : from->rank/said.failed_rank/@boot/peers
the reporter in a farewell@boot/leave.c@s/said.reporter > 0 \&\& said.reporter <= b->nranks ? said.reporter : from->rank + 1/said.reporter/@boot/peers
the length of a death or a leave@boot/deaths.c@s/if (bytes != sizeof rank)/if (0)/@boot/peers
the rank in a death or a leave@boot/deaths.c@s/rank >= 0 \&\& rank < b->nranks/1/@boot/peers
the length of a name@boot/names.c@s/if (bytes != sizeof name)/if (0)/@boot/peers
the rank of a name@boot/names.c@s/name.rank >= 0 \&\& name.rank < b->nranks/1/@boot/peers
the end of a name@boot/names.c@s/name.whois\[RD_WHOIS - 1\] = 0;/;/@boot/peers
a name that is known@boot/names.c@s/ \&\& !b->whois\[name.rank\]\[0\]//@boot/peers
the checksum of an id@boot/id.c@s/if (sodium_memcmp(sum, id->bytes + CHECKED, 16) != 0)/if (0)/@boot/wrong
the version of an id@boot/id.c@s/if (id->bytes\[4\] != ID_VERSION)/if (0)/@boot/wrong
a record's magic@monitor/read.c@s/if (h->magic != RD_MONITOR_MAGIC)/if (0)/@monitor/forged monitor/record
a record's version@monitor/read.c@s/if (h->version != RD_MONITOR_VERSION)/if (0)/@monitor/forged monitor/record
a record's length@monitor/read.c@s/if (h->bytes > r->bytes)/if (0)/@monitor/forged monitor/record
the size of the entries of a record@monitor/read.c@s/h->event_bytes != sizeof(rd_monitor_event_t)/0/@monitor/forged monitor/record
the number of events of a record@monitor/read.c@s/h->nevents == 0 ||/0 ||/;s/(h->nevents & (h->nevents - 1)) ||/0 ||/@monitor/forged monitor/record
where the communicators of a record lie@monitor/read.c@s/!within(r, h->comms_at, h->ncomms, h->comm_bytes)/0/@monitor/forged
where the events of a record lie@monitor/read.c@s/!within(r, h->events_at, h->nevents, h->event_bytes)/0/@monitor/forged
what a text does to a terminal@monitor/read.c@s/(unsigned char)\*at < ' ' ||/0 ||/@monitor/forged
the end of a text@monitor/read.c@s/text\[RD_MONITOR_NAME - 1\] = 0;/;/@monitor/forged
how many communicators were used@monitor/read.c@s/used < r->head.ncomms ? used : r->head.ncomms/used/@monitor/forged
a communicator's rank@monitor/read.c@s/comm->rank >= 0 \&\& comm->rank < comm->size/1/@monitor/forged
an event that another one has replaced@monitor/read.c@s/stamp >> 8 == ((index + 1) \& (UINT64_MAX >> 8))/1/@monitor/record monitor/killed
who has made the call is not late@monitor/verdict.c@s/track == RD_TRACK_COLLECTIVE ? (int64_t)ahead <= 0/track == RD_TRACK_COLLECTIVE ? 0/@monitor/judged
who is late in the end@monitor/verdict.c@s/return is_late \&\& .*/return NULL;/@monitor/judged
whom waits elsewhere lead to is owed@monitor/verdict_order.c@s/ \&\& !is_owed(view, at, next)))/ \&\& 0))/@monitor/judged
who has left@monitor/verdict.c@s/else if (next->comm.state == RD_MONITOR_ENDED) {/else if (0) {/@monitor/judged
a walk that comes back to its own way@monitor/verdict.c@s/was \&\& \*was \&\& \*was != walk/was \&\& *was/@monitor/judged
a wait that was not there before@monitor/verdict.c@s/!rd_verdict_still(then, next) ||/0 ||/;s/else if (!rd_verdict_still(then, next))/else if (0)/@monitor/judged
a submitted group holds nobody@monitor/verdict_order.c@s/!(call.flags \& RD_MONITOR_GROUPED)/1/@monitor/judged
each hop of a circle is owed@monitor/verdict_order.c@s/is_owed(view, \*at, next)/1/@monitor/judged
what a hop to another node waits for is owed@monitor/verdict_order.c@s/at->comm.calls\[RD_TRACK_COLLECTIVE\].begun >= hop->number/0/@monitor/judged
in which call the other node's rank is waited for@monitor/verdict_order.c@s/r->comm.calls\[RD_TRACK_COLLECTIVE\].begun == number \&\&//@monitor/judged
a call that failed before@monitor/verdict_order.c@s/ \&\& !then->failed\[t\]//@monitor/judged
the thread that waited last@monitor/verdict_order.c@s/return waited == thread;/return true;/@monitor/judged
whose the first call is@monitor/verdict_order.c@s/!rd_view_begun(&r->comm) \&\&/0 \&\&/@monitor/judged
whose a repetition is@monitor/verdict_order.c@s/ \&\& (!repeats || !has_threads(reader));/;/@monitor/judged
a track whose event is overwritten@monitor/verdict_order.c@s/unknown = true;/;/@monitor/judged
whose the first call of several threads is@monitor/verdict_order.c@s/return has_threads(&view.*/return false;/@monitor/judged
calls on a device hold nobody@monitor/verdict_order.c@s/r->comm.device < 0 \&\& rd_verdict/rd_verdict/@monitor/judged
which of several calls waits@monitor/verdict_order.c@s/ \&\& rd_verdict_under_way(&r->comm) == 1//@monitor/judged
a call that has failed is in no circle@monitor/verdict_order.c@s/ \&\& !past;/;/@monitor/judged
a probe follows what is owed@monitor/probe.c@s/return done < wait->number;/return true;/@monitor/judged
a probe within a call that all must begin@monitor/probe.c@s/event.kind == RD_BARRIER ||/1 ||/@monitor/judged
a rank of two threads, for a probe@monitor/probe.c@s/alone ? rd_verdict_held_alone(view, r, track) : //@monitor/judged
who repeats the calls of a circle@monitor/verdict_circle.c@s/if (!rd_verdict_calls_alone(view, r, call.thread))/if (0)/@monitor/judged
who works inside is not slow@monitor/verdict_slow.c@s/ \&\& is_outside(s)/ /@monitor/judged_slow
the margin of who is slow@monitor/verdict_slow.c@s/s->others - s->waited >= MARGIN \&\&//;s/own + margin/own - 2/@monitor/judged_slow
waits that lead elsewhere@monitor/verdict_slow.c@s/if (way < 0)/if (0)/;s/return 2 \* certain >= s->c->nranks - 1 \&\& certain > 0;/return true;/@monitor/judged_slow
who waits in messages himself@monitor/verdict_slow.c@s/return sum > ELSEWHERE;/return false;/@monitor/judged_slow
how slow a link must be@monitor/verdict_link.c@s/link->class + RATIO <=/link->class <=/@monitor/judged_slow
both ends of a link wait@monitor/verdict_link.c@s/ \&\& wait_for_each_other(&l, link, from)/ /@monitor/judged_slow
a slow sender is no slow link@monitor/verdict_link.c@s/!is_the_senders(&l, link) \&\&//@monitor/judged_slow
neither end of a link is named@monitor/verdict_link.c@s/rd_verdict_say_slow(v, -1, text)/rd_verdict_say_slow(v, link->to->comm.rank, text)/@monitor/judged_slow
END
echo "mutants: $tried defences taken out, $missed not noticed"
[ "$missed" -eq 0 ]
