/* See pickle.h. An opcode is one byte; what follows it is little-endian, but for floats. */
#include "monitor/pickle.h"

#include <string.h>

static void opcode(rd_out_t *out, int code)
{
    unsigned char byte = (unsigned char)code;

    rd_out_bytes(out, &byte, 1);
}

static void word(rd_out_t *out, uint64_t value, int bytes)
{
    unsigned char b[8];

    for (int i = 0; i < bytes; i++)
        b[i] = (unsigned char)(value >> 8 * i);
    rd_out_bytes(out, b, (size_t)bytes);
}

void rd_pickle_begin(rd_out_t *out)
{
    rd_out_bytes(out, "\x80\x02", 2); /* PROTO */
}

void rd_pickle_end(rd_out_t *out)
{
    opcode(out, '.'); /* STOP */
}

void rd_pickle_dict(rd_out_t *out)
{
    rd_out_bytes(out, "}(", 2); /* EMPTY_DICT, MARK */
}

void rd_pickle_dict_end(rd_out_t *out)
{
    opcode(out, 'u'); /* SETITEMS */
}

void rd_pickle_list(rd_out_t *out)
{
    rd_out_bytes(out, "](", 2); /* EMPTY_LIST, MARK */
}

void rd_pickle_list_end(rd_out_t *out)
{
    opcode(out, 'e'); /* APPENDS */
}

void rd_pickle_pair(rd_out_t *out)
{
    opcode(out, 0x86); /* TUPLE2 */
}

void rd_pickle_text(rd_out_t *out, const char *text)
{
    size_t n = strlen(text);

    opcode(out, 'X'); /* BINUNICODE */
    word(out, n, 4);
    rd_out_bytes(out, text, n);
}

void rd_pickle_signed(rd_out_t *out, int32_t value)
{
    opcode(out, 'J'); /* BININT */
    word(out, (uint32_t)value, 4);
}

void rd_pickle_int(rd_out_t *out, uint64_t value)
{
    if (value <= INT32_MAX) {
        rd_pickle_signed(out, (int32_t)value);
        return;
    }
    rd_out_bytes(out, "\x8a\x09", 2); /* LONG1 of nine bytes: the sign has one of its own */
    word(out, value, 8);
    opcode(out, 0);
}

void rd_pickle_float(rd_out_t *out, double value)
{
    unsigned char b[8];
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 8; i++)
        b[i] = (unsigned char)(bits >> 8 * (7 - i));
    opcode(out, 'G'); /* BINFLOAT */
    rd_out_bytes(out, b, sizeof b);
}

void rd_pickle_bool(rd_out_t *out, bool value)
{
    opcode(out, value ? 0x88 : 0x89); /* NEWTRUE, NEWFALSE */
}

void rd_pickle_none(rd_out_t *out)
{
    opcode(out, 'N');
}
