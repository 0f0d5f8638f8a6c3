/* NCCL's parameters by a call: rondo's variables and NCCL's are there, with what is in force, by every type that fits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/later.h"
#include "util/check.h"

static ncclParamHandle_t bind(const char *key)
{
    ncclParamHandle_t h = NULL;

    CHECK(pncclParamBind(&h, key) == ncclSuccess && h, "%s", key);
    return h;
}

static void typed(void)
{
    ncclParamHandle_t spin = bind("RONDO_SPIN"), slot = bind("RONDO_SLOT_BYTES"), algo = bind("RONDO_ALGO");
    ncclParamHandle_t first = bind("RONDO_TIMEOUT_FIRST_MS");
    int8_t i8 = 5;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    uint8_t u8 = 5;
    uint16_t u16 = 5;
    uint32_t u32;
    uint64_t u64;

    setenv("RONDO_SPIN", "128", 1);
    setenv("RONDO_SLOT_BYTES", "64K", 1);
    setenv("RONDO_ALGO", "ring", 1);
    CHECK(pncclParamGetI8(spin, &i8) == ncclInvalidArgument && i8 == 5);
    CHECK(pncclParamGetU8(spin, &u8) == ncclSuccess && u8 == 128);
    CHECK(pncclParamGetI16(spin, &i16) == ncclSuccess && i16 == 128);
    CHECK(pncclParamGetU16(slot, &u16) == ncclInvalidArgument && u16 == 5);
    CHECK(pncclParamGetI32(slot, &i32) == ncclSuccess && i32 == 65536);
    CHECK(pncclParamGetU32(slot, &u32) == ncclSuccess && u32 == 65536);
    CHECK(pncclParamGetU64(slot, &u64) == ncclSuccess && u64 == 65536);
    CHECK(pncclParamGetI64(first, &i64) == ncclSuccess && i64 == -1);
    CHECK(pncclParamGetI8(first, &i8) == ncclSuccess && i8 == -1);
    CHECK(pncclParamGetU64(first, &u64) == ncclInvalidArgument && u64 == 65536);
    CHECK(pncclParamGetI32(algo, &i32) == ncclInvalidArgument && i32 == 65536);
    CHECK(pncclParamGetI32(NULL, &i32) == ncclInvalidArgument && pncclParamGetI32(slot, NULL) == ncclInvalidArgument);
    CHECK(pncclParamGetI32((ncclParamHandle_t)(void *)&i32, &i32) == ncclInvalidArgument);
}

static void texts(void)
{
    ncclParamHandle_t algo = bind("RONDO_ALGO"), none = NULL;
    const char *text = NULL, *other = NULL;
    char raw[8];
    int length = 0;

    CHECK(pncclParamGetStr(algo, &text) == ncclSuccess && strcmp(text, "ring") == 0);
    CHECK(pncclParamGet(algo, raw, 4, &length) == ncclInvalidArgument && length == 5);
    CHECK(pncclParamGet(algo, raw, 5, &length) == ncclSuccess && length == 5 && strcmp(raw, "ring") == 0);
    CHECK(pncclParamGetParameter("RONDO_SLOT_BYTES", &text, &length) == ncclSuccess && length == 3);
    CHECK(strcmp(text, "64K") == 0);
    CHECK(pncclParamGetParameter("RONDO_IFACE", &text, &length) == ncclSuccess && length == 0 && *text == '\0');
    /* Handed on by the shim, and as the user has written it. */
    CHECK(pncclParamGetParameter("RONDO_HOSTID", &text, &length) == ncclSuccess && strcmp(text, "here") == 0);
    CHECK(pncclParamGetParameter("NCCL_HOSTID", &text, &length) == ncclSuccess && strcmp(text, "here") == 0);
    CHECK(pncclParamGetParameter("NCCL_NO_SUCH", &text, &length) == ncclInvalidArgument && !text && !length);
    CHECK(pncclParamBind(&none, "NCCL_NO_SUCH") == ncclInvalidArgument && !none);
    CHECK(pncclParamBind(&none, "NCCL_NTHREADS") == ncclInvalidArgument); /* it has no effect */
    CHECK(pncclParamBind(NULL, "RONDO_ALGO") == ncclInvalidArgument && pncclParamBind(&none, NULL) != ncclSuccess);
    /* A text stays while others are asked for. */
    CHECK(pncclParamGetStr(algo, &text) == ncclSuccess);
    CHECK(pncclParamGetParameter("RONDO_HOSTID", &other, &length) == ncclSuccess && strcmp(text, "ring") == 0);
    setenv("RONDO_SLOT_BYTES", "63", 1); /* not allowed */
    CHECK(pncclParamGetParameter("RONDO_SLOT_BYTES", &text, &length) == ncclInvalidArgument);
    setenv("RONDO_SLOT_BYTES", "64K", 1);
}

static void all(void)
{
    const char **table = NULL, *text;
    int count = 0, length, found = 0;

    CHECK(pncclParamGetAllParameterKeys(&table, &count) == ncclSuccess && count > 60, "%d", count);
    for (int i = 0; i < count; i++) {
        CHECK(pncclParamGetParameter(table[i], &text, &length) == ncclSuccess, "%s", table[i]);
        found += strcmp(table[i], "RONDO_TOPO_FILE") == 0 || strcmp(table[i], "NCCL_ALGO") == 0;
    }
    CHECK(found == 2);
    CHECK(pncclParamGetAllParameterKeys(NULL, &count) == ncclInvalidArgument);
    pncclParamDumpAll();
}

/* A question that has no answer does not spoil an open group. */
static void in_group(void)
{
    ncclParamHandle_t none;

    CHECK(ncclGroupStart() == ncclSuccess);
    CHECK(pncclParamBind(&none, "NCCL_NO_SUCH") == ncclInvalidArgument);
    CHECK(ncclGroupEnd() == ncclSuccess);
}

int main(void)
{
    setenv("RONDO_DEBUG", "none", 1);
    setenv("RONDO_NCCL_HOST", "1", 1);
    setenv("NCCL_HOSTID", "here", 1);
    unsetenv("RONDO_HOSTID");
    unsetenv("RONDO_IFACE");
    unsetenv("RONDO_TIMEOUT_FIRST_MS");
    setenv("NCCL_CONF_FILE", "/dev/null", 1);
    typed();
    texts();
    all();
    in_group();
    return failures != 0;
}
