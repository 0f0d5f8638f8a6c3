/* What a fiber has stored lies in its buffer, and comes out when the scheduler lets it, or when the fiber's fence or a
 * load of its own asks for it: in any order, but for what overlaps. */
#include "sim/machine_int.h"

#include <stdlib.h>
#include <string.h>

namespace machine
{

static const bool in_order = order_told() || getenv("SIM_IN_ORDER") != nullptr;

void came_out(machine_t *m, const void *at)
{
    line_changed(at);
    m->progress++;
}

static void out(machine_t *m, const store_t &s)
{
    if (s.bytes == 4) {
        __atomic_store_n((uint32_t *)s.at, (uint32_t)s.data[0], __ATOMIC_RELEASE);
    } else {
        /* A line's flag is its last word: whoever sees it sees the rest. Readers look at it first. */
        for (unsigned i = 0; i < s.bytes / 8; i++)
            __atomic_store_n((uint64_t *)s.at + i, s.data[i], __ATOMIC_RELEASE);
    }
    came_out(m, s.at);
}

static void unlist(machine_t *m, fiber_t *f)
{
    for (auto &h : m->holding)
        if (h == f) {
            h = m->holding.back();
            m->holding.pop_back();
            f->listed = false;
            return;
        }
}

static bool overlap(const store_t &s, const char *at, size_t bytes)
{
    return s.at < at + bytes && at < s.at + s.bytes;
}

/* Entry i comes out, and before it what the fiber has stored to the same place earlier. */
static void out_of_buffer(fiber_t *f, size_t i)
{
    store_t s = f->buffer[i];

    for (size_t j = 0; j < i; j++)
        if (overlap(f->buffer[j], s.at, s.bytes)) {
            s = f->buffer[j];
            i = j;
            break;
        }
    f->buffer.erase(f->buffer.begin() + (long)i);
    out(f->grid->machine, s);
    if (f->buffer.empty())
        unlist(f->grid->machine, f);
}

void out_all(fiber_t *f)
{
    while (!f->buffer.empty())
        out_of_buffer(f, 0);
}

void out_overlapping(fiber_t *f, const char *at, size_t bytes)
{
    for (size_t i = 0; i < f->buffer.size();)
        if (overlap(f->buffer[i], at, bytes)) {
            out_of_buffer(f, i);
            i = 0;
        } else {
            i++;
        }
}

void out_random(machine_t *m, bool forced)
{
    fiber_t *f = nullptr;
    uint32_t i = 0;

    for (int tries = 0; tries < (forced ? 8 : 1); tries++) {
        f = m->holding[m->draw((uint32_t)m->holding.size())];
        i = m->draw((uint32_t)f->buffer.size());
        if (!f->buffer[i].late)
            break;
    }
    if (forced || !f->buffer[i].late)
        out_of_buffer(f, i);
}

void push(fiber_t *f, char *at, uint32_t bytes, const void *data)
{
    store_t s;

    s.at = at;
    s.bytes = bytes;
    s.late = f->grid->machine->draw(8) == 0;
    memcpy(s.data, data, bytes);
    if (in_order) {
        out(f->grid->machine, s);
        return;
    }
    f->buffer.push_back(s);
    if (!f->listed) {
        f->grid->machine->holding.push_back(f);
        f->listed = true;
    }
}

} // namespace machine
