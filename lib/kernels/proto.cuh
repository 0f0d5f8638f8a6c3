/* The protocols: each is a layout of a warp's tile in a window, by which the receiver sees from the lines alone whether
 * they have arrived. A protocol defines
 *
 *   ITEMS                the number of 16-byte items of a tile that a lane holds
 *   DATA, WIRE           the bytes of data in a tile, and the bytes of window that it takes
 *   LINES                the number of 16-byte lines that a lane stores, for tiles that go through fifos (fifo.cuh,
 *                        which also explains BATCH)
 *   item(j, lane)        the number, within the tile, of the lane's j-th item, or DATA / 16 or more if it has none
 *   send, receive, clean functions for the slot of a tile, which is aligned to 128 bytes
 *
 * All bits of an unused slot are set. `receive` returns false when the kernel has to leave. The receiver must clean the
 * slot and execute a system-wide fence after that before it lets the sender use the slot again. A slot is always filled
 * whole: items beyond the end of the user's data are sent as well. */
#ifndef RD_KERNELS_PROTO_CUH
#define RD_KERNELS_PROTO_CUH

#include <gpu.cuh>

#include "kernels/access.cuh"
#include "kernels/wait.cuh"

RD_DEVICE uint32_t rd_lane()
{
    return gpu_thread() % 32;
}

/* LL: a line is {data, flag, data, flag}, four words of 4 bytes. Each half has a flag, so all that the protocol needs
 * is that stores of 8 bytes are not split. In banks the flag is 0; in fifos it is the tile's number. */
struct rd_lines_ll {
    static constexpr uint32_t ITEMS = 1, LINES = 2, DATA = 512, WIRE = 1024, BATCH = 2;

    static RD_MEMBER uint32_t item(uint32_t, uint32_t lane)
    {
        return lane;
    }

    static RD_MEMBER void send(char *slot, const uint4 (&v)[ITEMS], uint32_t lane, uint32_t number = 0)
    {
        line_store(slot + lane * 16, make_uint4(v[0].x, number, v[0].y, number));
        line_store(slot + 512 + lane * 16, make_uint4(v[0].z, number, v[0].w, number));
    }

    static RD_MEMBER bool poll(uint4 (&wire)[LINES], const char *slot, uint32_t lane, uint32_t number)
    {
        wire[0] = line_load(slot + lane * 16);
        wire[1] = line_load(slot + 512 + lane * 16);
        return wire[0].y == number && wire[0].w == number && wire[1].y == number && wire[1].w == number;
    }

    /* Returns true if the lane need not poll again, given the result of its last poll. */
    static RD_MEMBER bool over(bool there, rd_wait_t &wait)
    {
        return there || !wait.more();
    }

    static RD_MEMBER void join(uint4 (&v)[ITEMS], const uint4 (&wire)[LINES], uint32_t)
    {
        v[0] = make_uint4(wire[0].x, wire[0].z, wire[1].x, wire[1].z);
    }

    static RD_MEMBER bool receive(uint4 (&v)[ITEMS], const char *slot, uint32_t lane, rd_wait_t &wait)
    {
        uint4 a = make_uint4(~0u, ~0u, ~0u, ~0u), b = a;
        bool a_missing = true, b_missing = true;

        do {
            line_load_if(a, slot + lane * 16, a_missing);
            line_load_if(b, slot + 512 + lane * 16, b_missing);
            a_missing = (a.y | a.w) != 0;
            b_missing = (b.y | b.w) != 0;
        } while ((a_missing || b_missing) && wait.more());
        v[0] = make_uint4(a.x, a.z, b.x, b.z);
        return rd_wait_over(wait);
    }

    static RD_MEMBER void clean(char *slot, uint32_t lane)
    {
        line_clean(slot + lane * 16);
        line_clean(slot + 512 + lane * 16);
    }
};

/* LL128: a line of 128 bytes has 120 bytes of data and a flag of 8 bytes. It is correct where a line that a warp stores
 * by one instruction arrives whole, as it does over NVLink. A tile is eight lines in two rows of four. The last of
 * every eight lanes stores the flags; it has one item only, whose low half lies in the first row and whose high half
 * lies in the second one. In banks the flag is 0; in fifos it is the tile's number. */
struct rd_lines_ll128 {
    static constexpr uint32_t ITEMS = 2, LINES = 2, DATA = 960, WIRE = 1024, BATCH = 2;

    static RD_MEMBER uint32_t item(uint32_t j, uint32_t lane)
    {
        return j == 0 ? lane : lane % 8 == 7 ? DATA / 16 : 32 + lane - lane / 8;
    }

    static RD_MEMBER void send(char *slot, const uint4 (&v)[ITEMS], uint32_t lane, uint32_t number = 0)
    {
        bool flag = lane % 8 == 7;

        warp_lines_store(slot + lane * 16, flag ? make_uint4(v[0].x, v[0].y, number, number) : v[0]);
        warp_lines_store(slot + 512 + lane * 16, flag ? make_uint4(v[0].z, v[0].w, number, number) : v[1]);
    }

    /* Polls once. Returns true if the tile has arrived, as far as this lane sees. */
    static RD_MEMBER bool poll(uint4 (&wire)[LINES], const char *slot, uint32_t lane, uint32_t number = 0)
    {
        wire[0] = warp_lines_load(slot + lane * 16);
        wire[1] = warp_lines_load(slot + 512 + lane * 16);
        return lane % 8 != 7 ||
               (wire[0].z == number && wire[0].w == number && wire[1].z == number && wire[1].w == number);
    }

    /* As in LL, but the lanes of a warp poll together. */
    static RD_MEMBER bool over(bool there, rd_wait_t &wait)
    {
        return warp_all(there) || !warp_all(wait.more());
    }

    /* Makes items of the lines, once they have arrived. */
    static RD_MEMBER void join(uint4 (&v)[ITEMS], const uint4 (&wire)[LINES], uint32_t lane)
    {
        bool flag = lane % 8 == 7;

        v[0] = flag ? make_uint4(wire[0].x, wire[0].y, wire[1].x, wire[1].y) : wire[0];
        v[1] = wire[1];
    }

    static RD_MEMBER bool receive(uint4 (&v)[ITEMS], const char *slot, uint32_t lane, rd_wait_t &wait)
    {
        uint4 wire[LINES];

        while (!over(poll(wire, slot, lane), wait)) {
        }
        join(v, wire, lane);
        return rd_wait_over(wait);
    }

    static RD_MEMBER void clean(char *slot, uint32_t lane)
    {
        line_clean(slot + lane * 16);
        line_clean(slot + 512 + lane * 16);
    }
};

/* Sentinel: lines hold nothing but data, and a word whose bits are all set has not arrived yet. WORD is the length of a
 * word: 4 bytes for float32 and shorter types, and 8 for float64, of which either half alone may have all bits set. In
 * floating-point data such a word is a NaN, and the sender replaces it by another NaN. */
template <uint32_t WORD, uint32_t ROWS>
struct rd_lines_sentinel {
    static constexpr uint32_t ITEMS = ROWS, DATA = 512 * ROWS, WIRE = 512 * ROWS;

    static RD_MEMBER uint32_t item(uint32_t j, uint32_t lane)
    {
        return j * 32 + lane;
    }

    static RD_MEMBER bool there(const uint4 &v)
    {
        if (WORD == 4)
            return v.x != ~0u && v.y != ~0u && v.z != ~0u && v.w != ~0u;
        return (v.x & v.y) != ~0u && (v.z & v.w) != ~0u;
    }

    static RD_MEMBER uint4 guard(uint4 v)
    {
        if (WORD == 4)
            return make_uint4(v.x == ~0u ? 0x7fffffffu : v.x, v.y == ~0u ? 0x7fffffffu : v.y,
                              v.z == ~0u ? 0x7fffffffu : v.z, v.w == ~0u ? 0x7fffffffu : v.w);
        return make_uint4(v.x, (v.x & v.y) == ~0u ? 0x7fffffffu : v.y, v.z, (v.z & v.w) == ~0u ? 0x7fffffffu : v.w);
    }

    static RD_MEMBER void send(char *slot, const uint4 (&v)[ITEMS], uint32_t lane)
    {
#pragma unroll
        for (uint32_t j = 0; j < ROWS; j++)
            line_store(slot + j * 512 + lane * 16, guard(v[j]));
    }

    static RD_MEMBER bool receive(uint4 (&v)[ITEMS], const char *slot, uint32_t lane, rd_wait_t &wait)
    {
        bool missing;

#pragma unroll
        for (uint32_t j = 0; j < ROWS; j++)
            v[j] = make_uint4(~0u, ~0u, ~0u, ~0u);
        do {
            missing = false;
#pragma unroll
            for (uint32_t j = 0; j < ROWS; j++)
                line_load_if(v[j], slot + j * 512 + lane * 16, !there(v[j]));
#pragma unroll
            for (uint32_t j = 0; j < ROWS; j++)
                missing = missing || !there(v[j]);
        } while (missing && wait.more());
        return rd_wait_over(wait);
    }

    static RD_MEMBER void clean(char *slot, uint32_t lane)
    {
#pragma unroll
        for (uint32_t j = 0; j < ROWS; j++)
            line_clean(slot + j * 512 + lane * 16);
    }
};

/* Prefetches a lane's items of the tile that begins at byte `at` of a part. */
template <class PROTO, class PART>
RD_DEVICE void rd_tile_prefetch(const PART &part, uint64_t at, uint32_t lane)
{
#pragma unroll
    for (uint32_t j = 0; j < PROTO::ITEMS; j++) {
        uint32_t item = PROTO::item(j, lane);
        if (item < PROTO::DATA / 16)
            rd_part_prefetch(part, at + item * 16);
    }
}

/* Load and store a lane's items of the tile that begins at byte `at` of a part. */
template <class PROTO, class PART>
RD_DEVICE void rd_tile_load(uint4 (&v)[PROTO::ITEMS], const PART &part, uint64_t at, uint32_t lane)
{
#pragma unroll
    for (uint32_t j = 0; j < PROTO::ITEMS; j++) {
        uint32_t item = PROTO::item(j, lane);
        v[j] = make_uint4(0, 0, 0, 0);
        if (item < PROTO::DATA / 16)
            v[j] = rd_part_load(part, at + item * 16);
    }
}

template <class PROTO, class PART>
RD_DEVICE void rd_tile_store(const PART &part, uint64_t at, const uint4 (&v)[PROTO::ITEMS], uint32_t lane)
{
#pragma unroll
    for (uint32_t j = 0; j < PROTO::ITEMS; j++) {
        uint32_t item = PROTO::item(j, lane);
        if (item < PROTO::DATA / 16)
            rd_part_store(part, at + item * 16, v[j]);
    }
}

#endif
