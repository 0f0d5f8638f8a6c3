/* Questions: who waits for a rank of another node asks what that rank is doing, and its process answers by a thread
 * that runs whatever the rank does (liveness). Neighbours alone are connected, so a letter goes from one to the next:
 * each has neighbours at the distances 1, 2, 4, ... on both sides and takes the longest step that does not pass the
 * goal. That are at most log2(n) steps.
 *
 * A process on the way may be stopped, and keeps what it gets. So each letter is sent twice, once around on either
 * side; the second one to arrive changes nothing. Nobody waits for an answer that must come.
 *
 * A question may carry a probe, which whoever gets it passes on by another communicator, so that it follows waits from
 * rank to rank (monitor/probe.h).
 *
 * By the same way a rank that has lost patience asks another one to say so: of ranks that lose it in the same instant,
 * each on its own node, that one takes the word of the first, and says it to all. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boot/boot_int.h"

enum { QUESTION, ANSWER, CLAIM };

typedef struct __attribute__((packed)) letter {
    int32_t to, from, about;
    uint32_t number;
    uint64_t call;
    uint8_t back; /* it goes around by descending ranks */
    uint8_t kind; /* of a question there is nothing between this and `more` */
    int32_t status, rank, next;
    char text[RD_ERROR_BYTES];
    unsigned char more[RD_BOOT_MORE]; /* as much as there is: of a question, its probe */
} letter_t;

#define LEAST offsetof(letter_t, more)

/* Returns the neighbour for the next step; NULL: none is left in this direction. */
static rd_neighbour_t *next_step(rd_boot_t *b, int to, bool back)
{
    int way = back ? b->rank - to : to - b->rank;

    way += way < 0 ? b->nranks : 0;
    for (int k = b->rounds - 1; k >= 0; k--) {
        rd_neighbour_t *one = back ? &b->to[k] : &b->from[k];
        if (1 << k <= way && one->chan && !one->left && !rd_chan_over(one->chan))
            return one;
    }
    return NULL;
}

static void forward(rd_boot_t *b, const letter_t *letter, size_t nmore)
{
    rd_neighbour_t *step = next_step(b, letter->to, letter->back);

    if (step)
        rd_chan_send(step->chan, RD_REC_LETTER, letter, LEAST + nmore);
}

/* The caller has locked `b`. Returns false in an exchange, whose thread has the connections. */
static bool both_ways(rd_boot_t *b, letter_t *letter, size_t nmore)
{
    for (int back = 0; back < 2 && !b->busy; back++) {
        letter->back = (uint8_t)back;
        forward(b, letter, nmore);
    }
    return !b->busy;
}

static void send_both_ways(rd_boot_t *b, letter_t *letter, size_t nmore)
{
    pthread_mutex_lock(&b->lock);
    (void)both_ways(b, letter, nmore);
    pthread_mutex_unlock(&b->lock);
}

uint32_t rd_boot_ask_new(rd_boot_t *b, rd_questioner_t by)
{
    pthread_mutex_lock(&b->questions.lock);
    uint32_t number = (b->questions.of[by].number / RD_QUESTIONERS + 1) * RD_QUESTIONERS + by;
    b->questions.of[by].number = number;
    b->questions.of[by].answered = false;
    pthread_mutex_unlock(&b->questions.lock);
    return number;
}

void rd_boot_ask(rd_boot_t *b, int rank, const rd_boot_question_t *q)
{
    letter_t letter = {.to = rank, .from = b->rank, .about = q->about, .number = q->number, .call = q->call};

    memcpy(letter.more, q->probe, q->nprobe);
    if (rank != b->rank)
        send_both_ways(b, &letter, q->nprobe);
}

bool rd_boot_answered(rd_boot_t *b, rd_questioner_t by, rd_boot_answer_t *answer)
{
    pthread_mutex_lock(&b->questions.lock);
    bool answered = b->questions.of[by].answered;
    if (answered)
        *answer = b->questions.of[by].answer;
    pthread_mutex_unlock(&b->questions.lock);
    return answered;
}

static bool is_asked(rd_boot_t *b)
{
    pthread_mutex_lock(&b->questions.lock);
    bool some = b->questions.nasked > 0;
    pthread_mutex_unlock(&b->questions.lock);
    return some;
}

bool rd_boot_asked(rd_boot_t *b, rd_boot_question_t *question)
{
    if (!is_asked(b)) /* whoever wakes this thread may hold the other lock for a while */
        return false;
    pthread_mutex_lock(&b->lock);
    pthread_mutex_lock(&b->questions.lock);
    bool some = b->questions.nasked > 0 && !b->busy;
    if (some)
        *question = b->questions.asked[--b->questions.nasked];
    pthread_mutex_unlock(&b->questions.lock);
    pthread_mutex_unlock(&b->lock);
    return some;
}

static bool has_room(rd_questions_t *q)
{
    const int more = q->room ? 2 * q->room : 4;

    if (q->nasked < q->room || q->room == RD_BOOT_ASKED)
        return q->nasked < q->room;
    rd_boot_question_t *grown = realloc(q->asked, (size_t)more * sizeof *grown);
    if (!grown)
        return false;
    q->asked = grown;
    q->room = more;
    return true;
}

/* Who asks has one question at a time: a newer one takes the place of the one before. Probes of many ranks may come by
 * way of one. The caller has locked them. */
static void keep(rd_questions_t *q, const rd_boot_question_t *question)
{
    for (int i = 0; i < q->nasked; i++) {
        rd_boot_question_t *old = &q->asked[i];
        if (old->from != question->from || rd_questioner(old) != rd_questioner(question) ||
            old->nprobe != question->nprobe)
            continue;
        if (old->nprobe && memcmp(old->probe, question->probe, old->nprobe) != 0)
            continue;
        if ((int32_t)(question->number - old->number) > 0)
            *old = *question;
        return;
    }
    if (has_room(q))
        q->asked[q->nasked++] = *question;
}

static void put_back(rd_boot_t *b, const rd_boot_question_t *question)
{
    pthread_mutex_lock(&b->questions.lock);
    keep(&b->questions, question);
    pthread_mutex_unlock(&b->questions.lock);
}

/* An exchange that has begun since the question was taken says letters anew when it ends. */
void rd_boot_answer(rd_boot_t *b, const rd_boot_question_t *q, const rd_boot_answer_t *answer)
{
    letter_t letter = {.to = q->from,
                       .from = b->rank,
                       .about = q->about,
                       .number = q->number,
                       .kind = ANSWER,
                       .status = answer->status,
                       .rank = answer->rank,
                       .next = answer->next};

    snprintf(letter.text, sizeof letter.text, "%s", answer->text);
    memcpy(letter.more, answer->more, answer->nmore);
    pthread_mutex_lock(&b->lock);
    if (!both_ways(b, &letter, answer->nmore))
        put_back(b, q);
    pthread_mutex_unlock(&b->lock);
}

void rd_boot_came_back(rd_boot_t *b, uint32_t number, const char *text)
{
    rd_questions_t *q = &b->questions;
    rd_boot_answer_t *answer = &q->of[number % RD_QUESTIONERS].answer;

    pthread_mutex_lock(&q->lock);
    if (number == q->of[number % RD_QUESTIONERS].number && !q->of[number % RD_QUESTIONERS].answered) {
        *answer = (rd_boot_answer_t){.rank = -1, .next = -1};
        snprintf(answer->text, sizeof answer->text, "%s", text);
        q->of[number % RD_QUESTIONERS].answered = true;
    }
    pthread_mutex_unlock(&q->lock);
}

void rd_boot_claim(rd_boot_t *b, int to, const rd_boot_claim_t *claim)
{
    letter_t letter = {.to = to, .from = b->rank, .about = b->rank, .kind = CLAIM, .rank = claim->late};

    snprintf(letter.text, sizeof letter.text, "%s", claim->text);
    send_both_ways(b, &letter, 0);
}

bool rd_boot_claimed(rd_boot_t *b, rd_boot_claim_t *claim)
{
    pthread_mutex_lock(&b->questions.lock);
    bool some = b->questions.claimed;
    if (some)
        *claim = b->questions.claim;
    b->questions.claimed = false;
    pthread_mutex_unlock(&b->questions.lock);
    return some;
}

void rd_boot_say_letters(rd_boot_t *b)
{
    rd_questions_t *q = &b->questions;

    pthread_mutex_lock(&q->lock);
    if (q->on_letter && (q->claimed || (q->nasked && !b->busy)))
        q->on_letter(q->arg, false);
    pthread_mutex_unlock(&q->lock);
}

void rd_boot_say_unread(rd_boot_t *b)
{
    rd_questions_t *q = &b->questions;

    pthread_mutex_lock(&q->lock);
    if (q->on_letter)
        q->on_letter(q->arg, true);
    pthread_mutex_unlock(&q->lock);
}

void rd_boot_on_letter(rd_boot_t *b, void (*on_letter)(void *arg, bool unread), void *arg)
{
    pthread_mutex_lock(&b->lock);
    pthread_mutex_lock(&b->questions.lock);
    b->questions.on_letter = on_letter;
    b->questions.arg = arg;
    pthread_mutex_unlock(&b->questions.lock);
    rd_boot_say_letters(b);
    pthread_mutex_unlock(&b->lock);
}

static void take_question(rd_boot_t *b, const letter_t *letter, size_t nmore)
{
    rd_boot_question_t question = {
        .from = letter->from, .about = letter->about, .number = letter->number, .call = letter->call, .nprobe = nmore};

    if (nmore > sizeof question.probe)
        return;
    memcpy(question.probe, letter->more, nmore);
    keep(&b->questions, &question);
}

static int known_rank(const rd_boot_t *b, int rank)
{
    return rank >= 0 && rank < b->nranks ? rank : -1;
}

static void take_answer(rd_boot_t *b, const letter_t *letter, size_t nmore)
{
    uint32_t by = letter->number % RD_QUESTIONERS;
    rd_boot_answer_t *answer = &b->questions.of[by].answer;

    if (letter->number != b->questions.of[by].number || b->questions.of[by].answered)
        return;
    answer->status = letter->status;
    answer->rank = known_rank(b, letter->rank);
    answer->next = known_rank(b, letter->next);
    memcpy(answer->text, letter->text, sizeof answer->text);
    memcpy(answer->more, letter->more, nmore);
    answer->nmore = nmore;
    b->questions.of[by].answered = true;
}

/* The first one stands until it is taken; the others hear what becomes of it. */
static void take_claim(rd_boot_t *b, const letter_t *letter)
{
    rd_boot_claim_t *claim = &b->questions.claim;

    if (b->questions.claimed)
        return;
    claim->from = letter->from;
    claim->late = known_rank(b, letter->rank);
    memcpy(claim->text, letter->text, sizeof claim->text);
    b->questions.claimed = true;
}

static void take(rd_boot_t *b, const letter_t *letter, size_t nmore)
{
    pthread_mutex_lock(&b->questions.lock);
    if (letter->kind == CLAIM)
        take_claim(b, letter);
    else if (letter->kind == ANSWER)
        take_answer(b, letter, nmore);
    else if (letter->kind == QUESTION)
        take_question(b, letter, nmore);
    pthread_mutex_unlock(&b->questions.lock);
    rd_boot_say_letters(b);
}

void rd_boot_heard_letter(rd_boot_t *b, const unsigned char *data, size_t bytes)
{
    letter_t letter;

    if (bytes < LEAST || bytes > sizeof letter)
        return;
    memcpy(&letter, data, bytes);
    letter.text[sizeof letter.text - 1] = 0;
    if (letter.to < 0 || letter.to >= b->nranks || letter.from < 0 || letter.from >= b->nranks || letter.about < 0 ||
        letter.about >= b->nranks)
        return;
    if (letter.to == b->rank)
        take(b, &letter, bytes - LEAST);
    else
        forward(b, &letter, bytes - LEAST);
}
