/* The choice: it takes the cheapest that can serve, the same whoever asks; what is forced is taken or refused with its
 * reason; what does not exist is named.
 */
#include "cost/model.h"
#include "plan/choose.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/check.h"

static rd_choice_t all[RD_CHOICES_MOST];
static int nall;

static rondo_result_t choose(rd_coll_t coll, size_t bytes, int n, int nnodes, const char *algo, const char *proto,
                             rd_choice_t *best)
{
    rd_shape_t shape = {n, nnodes, NULL};
    rd_env_t env;
    rd_choose_args_t args = {.coll = coll,
                             .bytes = bytes,
                             .type_size = 4,
                             .shape = &shape,
                             .env = &env,
                             .cores = 2,
                             .local = (n + nnodes - 1) / nnodes,
                             .slot_bytes = 65536,
                             .slots = 4,
                             .cma = 1};

    if (rd_env_read(&env) != RONDO_SUCCESS)
        exit(1);
    rd_log_set_level(RD_LOG_NONE);
    strcpy(env.algo, algo);
    strcpy(env.proto, proto);
    nall = RD_CHOICES_MOST;
    return rd_choose(&args, best, all, &nall, NULL);
}

static void cheapest(rd_coll_t coll, size_t bytes, int n, int nnodes)
{
    rd_choice_t best;
    int served = 0;

    CHECK(choose(coll, bytes, n, nnodes, "", "", &best) == RONDO_SUCCESS, "%s", rd_thread_error());
    for (int i = 0; i < nall; i++) {
        if (all[i].excluded)
            continue;
        CHECK(served == i, "%s of %zu: an excluded one stands before a served one", rd_coll_name(coll), bytes);
        served++;
        CHECK(all[i].us >= best.us, "%s of %zu on %d: %s at %g us beats %s at %g", rd_coll_name(coll), bytes, n,
              all[i].algo->name, all[i].us, best.algo->name, best.us);
        CHECK(all[i].slice >= 64 && all[i].slice % 64 == 0 && (all[i].slice <= 65536 || all[i].proto == RD_PROTO_CMA),
              "slice %zu", all[i].slice);
        CHECK(all[i].proto != RD_PROTO_CMA || nnodes == 1, "cma between nodes");
        CHECK(all[i].proto != RD_PROTO_LL || (nnodes == 1 && all[i].slice <= RD_LL_MOST), "ll with slices of %zu",
              all[i].slice);
        CHECK((size_t)all[i].together * all[i].slice <= 65536 || all[i].together <= 1,
              "%s of %zu on %d: %d blocks of %zu bytes do not fit a slot", all[i].algo->name, bytes, n, all[i].together,
              all[i].slice);
        CHECK(all[i].together <= 1 || (all[i].algo->joins && nnodes > 1 && all[i].proto == RD_PROTO_SIMPLE),
              "%s lets no blocks go together", all[i].algo->name);
    }
    CHECK(served > 0 && nall < RD_CHOICES_MOST, "%d of %d", served, nall);
}

static void refused(rd_coll_t coll, size_t bytes, int nnodes, const char *algo, const char *proto, rondo_result_t want,
                    const char *words)
{
    rd_choice_t best = {.slice = 12345};
    rondo_result_t got = choose(coll, bytes, 4, nnodes, algo, proto, &best);

    CHECK(got == want, "%s with algo \"%s\" proto \"%s\": %d", rd_coll_name(coll), algo, proto, (int)got);
    CHECK(strstr(rd_thread_error(), words), "%s", rd_thread_error());
    CHECK(best.slice == 12345, "written on failure");
}

/* Short blocks between nodes go together, as many as fit a slot; long ones, and those of one node, go alone. */
static void short_blocks(void)
{
    rd_choice_t best;

    CHECK(choose(RD_ALLGATHER, 16 * 64, 16, 16, "pat", "", &best) == RONDO_SUCCESS && best.together == 16,
          "%d of 64 bytes", best.together);
    CHECK(choose(RD_ALLGATHER, 16 * 16384, 16, 16, "pat", "", &best) == RONDO_SUCCESS && best.together == 4,
          "%d of 16 KB", best.together);
    CHECK(choose(RD_ALLGATHER, 16 << 20, 16, 16, "pat", "", &best) == RONDO_SUCCESS && best.together <= 1, "%d of 1 MB",
          best.together);
    CHECK(choose(RD_ALLGATHER, 16 * 64, 16, 1, "pat", "", &best) == RONDO_SUCCESS && best.together <= 1,
          "%d on one node", best.together);
}

/* An all-to-all whose blocks are passed on is chosen between nodes for short blocks; on one node, where each would go
 * alone, it has to be named; and where blocks differ in length it is refused. */
static void passed_on(void)
{
    const rd_shape_t shape = {64, 64, NULL};
    rd_choice_t best;
    rd_env_t env;

    CHECK(choose(RD_ALLTOALL, 64 * 64, 64, 64, "", "", &best) == RONDO_SUCCESS && best.algo->relays &&
              best.together == 64,
          "64 bytes a pair by %s, %d together", best.algo->name, best.together);
    CHECK(choose(RD_ALLTOALL, 16 * 4096, 16, 4, "^direct", "", &best) == RONDO_SUCCESS && best.algo->relays,
          "4 KB a pair by %s", best.algo->name);
    CHECK(choose(RD_ALLTOALL, 16 * 16384, 16, 4, "^direct", "", &best) != RONDO_SUCCESS,
          "16 KB a pair, which a node's ranks may read, by %s", best.algo->name);
    CHECK(choose(RD_ALLTOALL, 64 << 20, 64, 64, "", "", &best) == RONDO_SUCCESS && !best.algo->relays,
          "1 MB a pair by %s", best.algo->name);
    CHECK(choose(RD_ALLTOALL, 64 * 8, 64, 1, "", "", &best) == RONDO_SUCCESS && !best.algo->relays, "on one node by %s",
          best.algo->name);
    CHECK(choose(RD_ALLTOALL, 64 * 8, 64, 1, "bruck", "", &best) == RONDO_SUCCESS && best.algo->relays &&
              best.together <= 1,
          "named, by %s, %d together", best.algo->name, best.together);
    if (rd_env_read(&env) != RONDO_SUCCESS)
        exit(1);
    rd_choose_args_t args = {.coll = RD_ALLTOALL,
                             .uneven = true,
                             .type_size = 4,
                             .shape = &shape,
                             .env = &env,
                             .cores = 2,
                             .local = 1,
                             .slot_bytes = 65536,
                             .slots = 4};
    CHECK(rd_choose(&args, &best, NULL, NULL, NULL) == RONDO_SUCCESS && !best.algo->relays, "with tables by %s",
          best.algo->name);
    strcpy(env.algo, "bruck");
    CHECK(rd_choose(&args, &best, NULL, NULL, NULL) == RONDO_ERR_UNSUPPORTED &&
              strstr(rd_thread_error(), "equally long"),
          "%s", rd_thread_error());
}

/* What goes by a switch serves where there is one that adds so much at a time, and nowhere else. On many nodes it is
 * the cheapest. */
static void switched(void)
{
    int node[64];
    const rd_shape_t shape = {64, 16, node};
    rd_choice_t best;
    rd_env_t env;

    for (int r = 0; r < 64; r++)
        node[r] = r / 4;
    if (rd_env_read(&env) != RONDO_SUCCESS)
        exit(1);
    rd_choose_args_t args = {.coll = RD_ALLREDUCE,
                             .bytes = 8 << 20,
                             .type_size = 4,
                             .shape = &shape,
                             .env = &env,
                             .cores = 64,
                             .local = 4,
                             .slot_bytes = 65536,
                             .slots = 4};
    CHECK(rd_choose(&args, &best, NULL, NULL, NULL) == RONDO_SUCCESS && !best.algo->switched, "without a switch by %s",
          best.algo->name);
    args.switch_bytes = 65536;
    CHECK(rd_choose(&args, &best, NULL, NULL, NULL) == RONDO_SUCCESS && best.algo->switched,
          "with a switch by %s, %zu bytes at a time", best.algo->name, best.slice);
    strcpy(env.algo, "collnet_chain");
    args.switch_bytes = 4096;
    CHECK(rd_choose(&args, &best, NULL, NULL, NULL) == RONDO_SUCCESS && best.algo->switched && best.slice <= 4096,
          "named, by %s, %zu bytes at a time", best.algo->name, best.slice);
    args.switch_bytes = 0;
    CHECK(rd_choose(&args, &best, NULL, NULL, NULL) == RONDO_ERR_UNSUPPORTED &&
              strstr(rd_thread_error(), "RONDO_COLLNET"),
          "%s", rd_thread_error());
    strcpy(env.algo, "collnet_direct");
    args.switch_bytes = 65536;
    for (int coll = 0; coll < RD_NUM_COLLS; coll++) {
        const bool blocks = coll == RD_ALLGATHER || coll == RD_REDUCE_SCATTER;
        args.coll = (rd_coll_t)coll;
        if (!(rd_algo_find("collnet_direct")->colls >> coll & 1))
            continue;
        CHECK(rd_choose(&args, &best, NULL, NULL, NULL) == RONDO_SUCCESS && best.us > 0 &&
                  best.slice * (blocks ? 16 : 1) <= 65536,
              "%s, %zu bytes at a time", rd_coll_name(args.coll), best.slice);
        args.longest = args.bytes;
        CHECK((rd_choose(&args, &best, NULL, NULL, NULL) == RONDO_SUCCESS) == !blocks, "%s of blocks that differ",
              rd_coll_name(args.coll));
        args.longest = 0;
        args.switch_bytes = 960; /* less than a line for each of the nodes */
        CHECK((rd_choose(&args, &best, NULL, NULL, NULL) == RONDO_SUCCESS) == !blocks, "%s by short messages",
              rd_coll_name(args.coll));
        args.switch_bytes = 65536;
    }
}

static void forced(void)
{
    rd_choice_t best;

    for (const rd_algo_t *const *algo = rd_algos; *algo; algo++) {
        for (int coll = 0; coll < RD_BARRIER; coll++) {
            rondo_result_t result = choose((rd_coll_t)coll, 1 << 20, 4, 1, (*algo)->name, "", &best);

            if (strncmp((*algo)->name, "hier", 4) == 0 || (*algo)->switched)
                CHECK(result == RONDO_ERR_UNSUPPORTED, "%s on one node", (*algo)->name);
            else if ((*algo)->colls & 1u << coll)
                CHECK(result == RONDO_SUCCESS && best.algo == *algo, "%s %s: %d", (*algo)->name,
                      rd_coll_name((rd_coll_t)coll), (int)result);
            else
                CHECK(result == RONDO_ERR_UNSUPPORTED, "%s %s: %d", (*algo)->name, rd_coll_name((rd_coll_t)coll),
                      (int)result);
        }
    }
    CHECK(choose(RD_BARRIER, 0, 4, 1, "ring", "", &best) == RONDO_SUCCESS, "a bare name took the barrier away");
    CHECK(choose(RD_BARRIER, 0, 4, 1, "", "cma", &best) == RONDO_SUCCESS, "a protocol took the barrier away");
    CHECK(choose(RD_ALLREDUCE, 64, 4, 1, "broadcast=direct,allreduce=ring", "", &best) == RONDO_SUCCESS &&
              strcmp(best.algo->name, "ring") == 0,
          "the second entry");
    CHECK(choose(RD_ALLREDUCE, 64, 4, 1, "ring,allreduce=oneshot", "", &best) == RONDO_SUCCESS &&
              strcmp(best.algo->name, "oneshot") == 0,
          "an entry for the operation goes before one for all");
    CHECK(choose(RD_ALLREDUCE, 64, 4, 1, "", "simple", &best) == RONDO_SUCCESS && best.proto == RD_PROTO_SIMPLE,
          "proto");
    CHECK(choose(RD_ALLREDUCE, 8 << 20, 4, 1, "allreduce=tree+ring", "", &best) == RONDO_SUCCESS &&
              (strcmp(best.algo->name, "ring") == 0 || strcmp(best.algo->name, "tree") == 0),
          "%s is neither tree nor ring", best.algo->name);
    CHECK(choose(RD_ALLREDUCE, 8 << 20, 4, 1, "", "", &best) == RONDO_SUCCESS, "%s", rd_thread_error());
    for (int i = 0; i < 3; i++) { /* the best is excluded again and again */
        static char text[100] = "allreduce=^";
        const rd_algo_t *was = best.algo;
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? "+" : "", was->name);
        CHECK(choose(RD_ALLREDUCE, 8 << 20, 4, 1, text, "", &best) == RONDO_SUCCESS && best.algo != was, "%s: %s", text,
              best.algo->name);
    }
    refused(RD_ALLREDUCE, 8, 1, "ring+rnig", "", RONDO_ERR_INVALID_ARGUMENT, "\"rnig\"");
    refused(RD_ALLREDUCE, 8, 1, "^rnig", "", RONDO_ERR_INVALID_ARGUMENT, "\"rnig\"");
    refused(RD_BROADCAST, 64, 1, "twoshot", "", RONDO_ERR_UNSUPPORTED, "does not do this operation");
    refused(RD_BARRIER, 0, 1, "barrier=ring", "", RONDO_ERR_UNSUPPORTED, "does not do this operation");
    refused(RD_ALLREDUCE, 1 << 20, 1, "", "ll", RONDO_ERR_UNSUPPORTED, "longer");
    refused(RD_ALLREDUCE, 8, 1, "ring", "cma", RONDO_ERR_UNSUPPORTED, "peer may still read");
    refused(RD_ALLREDUCE, 1 << 20, 2, "", "cma", RONDO_ERR_UNSUPPORTED, "one node");
    refused(RD_ALLREDUCE, 8, 2, "", "ll", RONDO_ERR_UNSUPPORTED, "shared memory");
    refused(RD_ALLREDUCE, 8, 1, "rnig", "", RONDO_ERR_INVALID_ARGUMENT, "\"rnig\"");
    refused(RD_ALLREDUCE, 8, 1, "alreduce=ring", "", RONDO_ERR_INVALID_ARGUMENT, "\"alreduce\"");
    refused(RD_ALLREDUCE, 8, 1, "broadcast=rong", "", RONDO_ERR_INVALID_ARGUMENT, "\"rong\"");
}

/* The net communicators of GPUs: the host's algorithms of the names that are forced, where it has them. */
static void between(const char *algo, const char *proto, const char *want, const char *want_proto)
{
    rd_env_t env, net;

    if (rd_env_read(&env) != RONDO_SUCCESS)
        exit(1);
    strcpy(env.algo, algo);
    strcpy(env.proto, proto);
    rd_forced_between(&env, &net);
    CHECK(strcmp(net.between, want) == 0 && strcmp(net.proto, want_proto) == 0 && net.where_served,
          "RONDO_ALGO=%s RONDO_PROTO=%s becomes %s and %s", algo, proto, net.between, net.proto);
    CHECK(rd_choose_check(&net, NULL) == RONDO_SUCCESS, "%s", net.between);
}

static void on_net_communicators(void)
{
    const rd_shape_t shape = {4, 2, NULL};
    rd_choice_t best;
    rd_env_t env, net;

    between("", "", "", "");
    between("allreduce=chain,broadcast=chain,reduce=chain", "ll128", "reduce=ring,broadcast=ring", "");
    between("allgather=ring,allgather=copy,barrier=rd", "simple", "allgather=ring,barrier=rd", "simple");
    between("twoshot", "sentinel", "allreduce=twoshot", "");
    between("", "simple;allreduce:ll128", "", "");
    between("", "Simple;allreduce:simple", "", "simple");
    between("allreduce=tree+ring,broadcast=^chain+tree", "", "allreduce=ring+tree,broadcast=^ring+tree", "");
    if (rd_env_read(&env) != RONDO_SUCCESS)
        exit(1);
    /* Written out for each operation this is long, and must not be cut. */
    strcpy(env.algo, "^ring+tree+pat+hier_ring+hier_tree+hier_rd+hier_binomial+hier_pat+hier_direct");
    rd_forced_between(&env, &net);
    CHECK(strlen(net.between) > sizeof net.algo && rd_choose_check(&net, NULL) == RONDO_SUCCESS, "%s", net.between);
    strcpy(env.algo, "tree");
    rd_forced_between(&env, &net);
    rd_choose_args_t args = {.coll = RD_ALLREDUCE,
                             .bytes = 1 << 20,
                             .type_size = 4,
                             .shape = &shape,
                             .env = &net,
                             .cores = 2,
                             .local = 2,
                             .slot_bytes = 65536,
                             .slots = 4};
    CHECK(rd_choose(&args, &best, NULL, NULL, NULL) == RONDO_SUCCESS && strcmp(best.algo->name, "tree") == 0, "tree");
    strcpy(net.between, "allreduce=binomial"); /* cannot serve: nothing waits for a refusal there */
    CHECK(rd_choose(&args, &best, NULL, NULL, NULL) == RONDO_SUCCESS, "%s", rd_thread_error());
}

/* The rule of single messages: what is short goes by lines, what is long by whichever may; forced is taken or refused.
 */
static void messages(void)
{
    static const size_t sizes[] = {0, 8, 64, 1024, 1025, 16384, 1 << 20, (size_t)5 << 30};
    rd_proto_t proto;
    rd_env_t env;
    size_t slice, ll_most;

    if (rd_env_read(&env) != RONDO_SUCCESS)
        exit(1);
    ll_most = rd_choose_ll_most(&env, NULL);
    rd_log_set_level(RD_LOG_NONE);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const rd_message_args_t far = {.env = &env, .ll_most = ll_most, .bytes = sizes[i], .slot_bytes = 65536};
        rd_message_args_t near = far, unread; /* unread: near, but neither rank may read the other's memory */

        near.here = true;
        unread = near;
        near.cma = true;
        for (int here = 0; here < 2; here++) {
            CHECK(rd_choose_message(here ? &near : &far, &proto, &slice, NULL) == RONDO_SUCCESS, "%zu", sizes[i]);
            CHECK(here || proto == RD_PROTO_SIMPLE, "%s between nodes", rd_proto_name(proto));
            CHECK(!here || (proto == RD_PROTO_LL) == (sizes[i] <= ll_most), "%s for %zu bytes", rd_proto_name(proto),
                  sizes[i]);
            CHECK(slice % 64 == 0 && slice > 0 && slice <= 65536, "slice %zu", slice);
        }
        for (int p = 0; p < RD_NUM_PROTOS; p++) {
            strcpy(env.proto, rd_proto_name((rd_proto_t)p));
            if (rd_proto_is_board((rd_proto_t)p)) {
                CHECK(rd_choose_message(&near, &proto, &slice, NULL) == RONDO_ERR_UNSUPPORTED,
                      "%s carries a message of a pair", env.proto);
                continue;
            }
            CHECK(rd_choose_message(&near, &proto, &slice, NULL) == RONDO_SUCCESS && proto == (rd_proto_t)p,
                  "%s forced for %zu bytes", env.proto, sizes[i]);
        }
        strcpy(env.proto, "ll");
        CHECK(rd_choose_message(&far, &proto, &slice, NULL) == RONDO_ERR_UNSUPPORTED, "ll");
        strcpy(env.proto, "cma");
        CHECK(rd_choose_message(&unread, &proto, &slice, NULL) == RONDO_ERR_UNSUPPORTED, "cma");
        /* Of a list: the usual one if it is there, else what can carry the message. */
        strcpy(env.proto, "ll,simple");
        CHECK(rd_choose_message(&near, &proto, &slice, NULL) == RONDO_SUCCESS &&
                  proto == (sizes[i] <= ll_most ? RD_PROTO_LL : RD_PROTO_SIMPLE),
              "%zu bytes by a list", sizes[i]);
        strcpy(env.proto, "^LL;allreduce:ll");
        CHECK(rd_choose_message(&unread, &proto, &slice, NULL) == RONDO_SUCCESS && proto == RD_PROTO_SIMPLE,
              "%zu bytes, ll excluded", sizes[i]);
        strcpy(env.proto, "allreduce:cma");
        CHECK(rd_choose_message(&far, &proto, &slice, NULL) == RONDO_SUCCESS, "free");
        env.proto[0] = '\0';
    }
}

/* Lines end where slots begin to be cheaper, or at RONDO_LL_MAX. */
static void lines_most(void)
{
    rd_prices_t prices = *rd_prices_builtin(0);
    rd_price_t *lines = &prices.of[RD_PRICE_SHM][RD_PROTO_LL], *slots = &prices.of[RD_PRICE_SHM][RD_PROTO_SIMPLE];
    rd_env_t env;
    size_t most;

    if (rd_env_read(&env) != RONDO_SUCCESS)
        exit(1);
    *lines = (rd_price_t){.cross = 1};
    *slots = (rd_price_t){.alpha = 320};
    most = rd_choose_ll_most(&env, &prices);
    CHECK(most == 320, "%zu bytes at most by lines, which cost as much as slots at 320", most);
    slots->alpha = 5000;
    most = rd_choose_ll_most(&env, &prices);
    CHECK(most == env.ll_max, "%zu bytes at most by lines, RONDO_LL_MAX is %zu", most, env.ll_max);
    lines->alpha = 6000;
    most = rd_choose_ll_most(&env, &prices);
    CHECK(most == 0, "%zu bytes at most by lines, which are always dearer", most);
    for (int table = 0; rd_prices_builtin(table); table++) {
        most = rd_choose_ll_most(&env, rd_prices_builtin(table));
        CHECK(most >= 64 && most <= env.ll_max, "%zu bytes at most by lines in table %d", most, table);
        most = rd_choose_ll_most_alone(&env, rd_prices_builtin(table));
        CHECK(most == env.ll_max, "%zu bytes of a message alone at most by lines in table %d", most, table);
    }
}

/* Messages to the root of a gatherv go by CMA from where a gather by CMA is cheaper than by slots. */
static void to_one(void)
{
    rd_prices_t prices = *rd_prices_builtin(0);
    rd_price_t *read = &prices.of[RD_PRICE_SHM][RD_PROTO_CMA], *slots = &prices.of[RD_PRICE_SHM][RD_PROTO_SIMPLE];
    rd_cost_env_t node = {8, 1, 8, 8, 8, &prices, 0};
    rd_env_t env;
    size_t least;

    if (rd_env_read(&env) != RONDO_SUCCESS)
        exit(1);
    *slots = (rd_price_t){.alpha = 0.1, .beta = 1e-4, .cross = 1e-4};
    *read = (rd_price_t){.alpha = 0.1, .message = 0.1, .cross = 1e-2};
    least = rd_choose_to_one_least(&env, &node);
    CHECK(least == SIZE_MAX, "by CMA from %zu bytes on, which is always dearer", least);
    *read = (rd_price_t){.alpha = 0.1, .message = 50, .cross = 1e-5};
    least = rd_choose_to_one_least(&env, &node);
    CHECK(least > env.cma_min && least < (64u << 20), "by CMA from %zu bytes on, of which a message takes 50 us",
          least);
    *read = (rd_price_t){.alpha = 0.01};
    slots->message = 1;
    env.cma_min = 0;
    least = rd_choose_to_one_least(&env, &node);
    CHECK(least == 1, "by CMA from %zu bytes on, which is always cheaper and as short as may be", least);
}

/* On nodes that are played a root that hears from everybody is cheaper than a chain, and one that tells everybody is
 * dearer; where cores are few, one that tells only half of them is, too. */
static void played(void)
{
    for (int table = 0; rd_prices_builtin(table); table++) {
        const rd_cost_env_t env = {4, 4, 1, 2, 4, rd_prices_builtin(table), 0};
        for (size_t bytes = 256; bytes <= 8192; bytes *= 32) {
            double heard = rd_cost_us(&env, RD_REDUCE, "direct", 0, RD_PROTO_SIMPLE, bytes, 65536);
            double told = rd_cost_us(&env, RD_BROADCAST, "direct", 0, RD_PROTO_SIMPLE, bytes, 65536);
            double reduced = rd_cost_us(&env, RD_REDUCE, "ring", 0, RD_PROTO_SIMPLE, bytes, 65536);
            double handed_on = rd_cost_us(&env, RD_BROADCAST, "ring", 0, RD_PROTO_SIMPLE, bytes, 65536);
            CHECK(heard < reduced, "reduce of %zu, table %d: %g us, ring %g", bytes, table, heard, reduced);
            CHECK(told > handed_on, "broadcast of %zu, table %d: %g us, ring %g", bytes, table, told, handed_on);
        }
        double halves = rd_cost_us(&env, RD_BROADCAST, "binomial", 0, RD_PROTO_SIMPLE, 8, 65536);
        double handed_on = rd_cost_us(&env, RD_BROADCAST, "ring", 0, RD_PROTO_SIMPLE, 8, 65536);
        CHECK(halves > handed_on, "broadcast of 8, table %d: binomial %g us, ring %g", table, halves, handed_on);
    }
}

/* The longest slice of any candidate by slots. */
static size_t longest(rd_coll_t coll, size_t bytes, int n, int nnodes, int sharing)
{
    rd_shape_t shape = {n, nnodes, NULL};
    size_t most = 0;
    rd_choice_t best;
    rd_env_t env;
    rd_choose_args_t args = {.coll = coll,
                             .bytes = bytes,
                             .type_size = 4,
                             .shape = &shape,
                             .env = &env,
                             .cores = 2,
                             .local = n / nnodes,
                             .sharing = sharing,
                             .slot_bytes = 61440,
                             .long_bytes = 520192,
                             .slots = 16};

    if (rd_env_read(&env) != RONDO_SUCCESS)
        exit(1);
    nall = RD_CHOICES_MOST;
    CHECK(rd_choose(&args, &best, all, &nall, NULL) == RONDO_SUCCESS && nall < RD_CHOICES_MOST, "%d choices", nall);
    for (int i = 0; i < nall; i++)
        most = !all[i].excluded && all[i].slice > most ? all[i].slice : most;
    return most;
}

/* Long slots serve between nodes alone, one way, where cores are not crowded; and messages, in whole frames. */
static void long_slots(void)
{
    static const struct {
        size_t bytes, here, between;
    } messages[] = {{1000, 16384, 61440},      {65536, 16384, 61440},    {262144, 65536, 61440},
                    {1 << 20, 262144, 258048}, {700000, 175040, 126976}, {1 << 26, 520192, 258048}};
    rd_proto_t proto;
    size_t slice;
    rd_env_t env;

    for (int coll = 0; coll < RD_NUM_COLLS; coll++) {
        int one_way = coll == RD_BROADCAST || coll == RD_REDUCE || coll == RD_GATHER || coll == RD_SCATTER;
        CHECK((longest((rd_coll_t)coll, 1 << 24, 2, 2, 2) > 61440) == one_way, "%s", rd_coll_name((rd_coll_t)coll));
        CHECK(longest((rd_coll_t)coll, 1000000, 2, 2, 2) <= 61440, "%s of 1 MB", rd_coll_name((rd_coll_t)coll));
        CHECK(longest((rd_coll_t)coll, 1 << 24, 4, 4, 4) <= 61440, "%s, crowded", rd_coll_name((rd_coll_t)coll));
        CHECK(longest((rd_coll_t)coll, 1 << 24, 4, 2, 2) <= 61440, "%s, two on a node", rd_coll_name((rd_coll_t)coll));
    }
    if (rd_env_read(&env) != RONDO_SUCCESS)
        exit(1);
    strcpy(env.proto, "simple");
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        for (int here = 0; here < 2; here++) {
            size_t wanted = here ? messages[i].here : messages[i].between;
            const rd_message_args_t m = {.env = &env, .here = here, .bytes = messages[i].bytes, .slot_bytes = 520192};
            CHECK(rd_choose_message(&m, &proto, &slice, NULL) == RONDO_SUCCESS && slice == wanted,
                  "%zu bytes go by %zu, not %zu", messages[i].bytes, slice, wanted);
        }
    }
}

int main(void)
{
    static const size_t sizes[] = {0, 1, 8, 1000, 4096, 65536, 1000003, 1 << 24, (size_t)5 << 30};

    alarm(60);
    unsetenv("RONDO_ALGO");
    unsetenv("RONDO_PROTO");
    rd_log_set_level(RD_LOG_NONE);
    for (int coll = 0; coll < RD_NUM_COLLS; coll++)
        for (int n = 1; n <= 70; n += n < 9 ? 1 : 13)
            for (int nodes = 1; nodes <= n && nodes < 4; nodes++)
                for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
                    cheapest((rd_coll_t)coll, sizes[i], n, nodes);
    short_blocks();
    passed_on();
    switched();
    forced();
    on_net_communicators();
    messages();
    lines_most();
    to_one();
    played();
    long_slots();
    return failures != 0;
}
