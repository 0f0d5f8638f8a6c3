#include "sim/machine_lines.h"

namespace machine
{

std::atomic<uint32_t> changes[1 << 16];
static std::atomic<uint64_t> outs; /* all of them */
/* The last ones: the number of each, from 1 on, above the place in `changes` that was counted up. */
constexpr unsigned RECENT = 4096;
static std::atomic<uint64_t> recent[RECENT];

uint64_t lines_changed()
{
    return outs.load(std::memory_order_acquire);
}

void line_changed(const void *p)
{
    uint16_t place = place_of(p);

    changes[place].fetch_add(1, std::memory_order_release);
    uint64_t number = outs.fetch_add(1, std::memory_order_release) + 1;
    recent[number % RECENT].store(number << 16 | place, std::memory_order_release);
}

/* The line is in whole on a page that is there, though not all of it need be of the object that `p` is in. */
__attribute__((no_sanitize("address"))) uint64_t sum_of(const void *p)
{
    const uint64_t *line = (const uint64_t *)((uintptr_t)p / LINE * LINE);
    uint64_t sum[4] = {};

    for (unsigned i = 0; i < LINE / 8; i++)
        sum[i % 4] = (sum[i % 4] ^ __atomic_load_n(&line[i], __ATOMIC_ACQUIRE)) * 0x9e3779b97f4a7c15ull;
    for (uint64_t s : sum)
        sum[0] = (sum[0] ^ s >> 29) * 0x2545f4914f6cdd1dull + s;
    return sum[0];
}

bool change_of(uint64_t number, uint16_t *place)
{
    uint64_t r = recent[number % RECENT].load(std::memory_order_acquire);

    *place = (uint16_t)r;
    return r >> 16 == number;
}

} // namespace machine
