/* NCCL's parameters by a call (since 2.30): here they are the variables of rondo-info --env, and those of NCCL's that
 * have an effect. All of them are texts; an integer is read out of one if the whole text is a number, with K, M or G
 * behind it or not, that fits. As in NCCL, a question about what does not exist is logged at INFO alone and is no
 * failure of an open group, because programs ask in order to find out.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/conf_file.h"
#include "nccl/later.h"
#include "nccl/shim.h"
#include "nccl/table.h"

#define PARAMS_MOST 256
#define VALUE_BYTES 512 /* what rondo_setting_get asks for */

struct ncclParamHandle {
    char key[64];
    bool nccl; /* a variable of NCCL's */
};

static struct ncclParamHandle params[PARAMS_MOST];
static const char *keys[PARAMS_MOST];
static int nparams;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void add(const char *prefix, const char *name, bool nccl)
{
    if (nparams == PARAMS_MOST)
        return;
    snprintf(params[nparams].key, sizeof params[nparams].key, "%s%s", prefix, name);
    params[nparams].nccl = nccl;
    keys[nparams] = params[nparams].key;
    nparams++;
}

static void list(void)
{
    for (int i = 0; rondo_setting_name(i); i++)
        add("", rondo_setting_name(i), false);
    for (int i = 0; i < nc_nvariables; i++)
        if (nc_variables[i].kind != NC_NO_EFFECT)
            add("NCCL_", nc_variables[i].name, true);
}

static ncclParamHandle_t find(const char *key)
{
    nc_settings();
    pthread_once(&once, list);
    for (int i = 0; i < nparams; i++)
        if (strcmp(params[i].key, key) == 0)
            return &params[i];
    nc_log(NC_SUBSYS_ENV, "PARAM: there is no parameter \"%.100s\"; rondo-info --env and --nccl list them", key);
    return NULL;
}

static bool is_handle(ncclParamHandle_t h)
{
    for (int i = 0; i < nparams; i++)
        if (h == &params[i])
            return true;
    return false;
}

static bool value_of(ncclParamHandle_t h, char text[VALUE_BYTES])
{
    if (h->nccl) {
        const char *value = nc_env(h->key);

        snprintf(text, VALUE_BYTES, "%s", value ? value : "");
        return true;
    }
    return rondo_setting_get(h->key, text, VALUE_BYTES) == RONDO_SUCCESS;
}

static ncclResult_t null_argument(const char *call)
{
    nc_log(NC_SUBSYS_ENV, "PARAM: %s: an argument is NULL, or the handle is none of ncclParamBind's", call);
    return ncclInvalidArgument;
}

ncclResult_t pncclParamBind(ncclParamHandle_t *out, const char *key)
{
    ncclParamHandle_t found;

    if (!out || !key)
        return null_argument("ncclParamBind");
    if (!(found = find(key)))
        return ncclInvalidArgument;
    *out = found;
    return ncclSuccess;
}
NC_TWIN(ParamBind);

/* ---- by type ---- */

/* Reads a number and the power of 1024 behind it. Returns the sign, 1 or -1, or 0 if the text is no such number. */
static int number(const char *text, unsigned long long *value)
{
    static const char suffix[] = "KMG";
    int sign = *text == '-' ? -1 : 1, shift = 0;
    const char *digits = text + (sign < 0), *found;
    char *end;

    if (*digits < '0' || *digits > '9')
        return 0;
    errno = 0;
    *value = strtoull(digits, &end, 10);
    if (*end && (found = strchr(suffix, *end & ~0x20)) != NULL && *found) {
        shift = 10 * (int)(found - suffix + 1);
        end++;
    }
    if (errno || *end || *value > ULLONG_MAX >> shift)
        return 0;
    *value <<= shift;
    return sign;
}

/* Reads the parameter as a number from -least to most. */
static ncclResult_t get_number(ncclParamHandle_t h, const void *out, unsigned long long least, unsigned long long most,
                               const char *call, int *sign, unsigned long long *value)
{
    char text[VALUE_BYTES];

    if (!out || !is_handle(h))
        return null_argument(call);
    if (!value_of(h, text))
        return ncclInvalidArgument;
    *sign = number(text, value);
    if (*sign && *value <= (*sign < 0 ? least : most))
        return ncclSuccess;
    nc_log(NC_SUBSYS_ENV, "PARAM: %s: %s=%s is no number that fits", call, h->key, text);
    return ncclInvalidArgument;
}

#define GETTER(suffix, type, least, most)                                                                              \
    ncclResult_t pncclParamGet##suffix(ncclParamHandle_t h, type *out)                                                 \
    {                                                                                                                  \
        unsigned long long value;                                                                                      \
        int sign;                                                                                                      \
        ncclResult_t result = get_number(h, out, least, most, "ncclParamGet" #suffix, &sign, &value);                  \
                                                                                                                       \
        if (result == ncclSuccess)                                                                                     \
            *out = (type)(sign < 0 ? 0 - value : value);                                                               \
        return result;                                                                                                 \
    }                                                                                                                  \
    NC_TWIN(ParamGet##suffix)

GETTER(I8, int8_t, 1ull << 7, INT8_MAX);
GETTER(I16, int16_t, 1ull << 15, INT16_MAX);
GETTER(I32, int32_t, 1ull << 31, INT32_MAX);
GETTER(I64, int64_t, 1ull << 63, INT64_MAX);
GETTER(U8, uint8_t, 0, UINT8_MAX);
GETTER(U16, uint16_t, 0, UINT16_MAX);
GETTER(U32, uint32_t, 0, UINT32_MAX);
GETTER(U64, uint64_t, 0, UINT64_MAX);

/* ---- as text ---- */

/* Returns a copy that stays: callers may use a text until their thread's next call. Memory of the thread's own would be
 * static, of which a library that is opened at run time gets little. Each text is kept once, and there are few. */
static const char *kept(const char *text)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct text {
        struct text *next;
        char text[VALUE_BYTES];
    } * texts;
    struct text *t;

    pthread_mutex_lock(&lock);
    for (t = texts; t && strcmp(t->text, text) != 0;)
        t = t->next;
    if (!t && (t = malloc(sizeof *t)) != NULL) {
        snprintf(t->text, sizeof t->text, "%s", text);
        t->next = texts;
        texts = t;
    }
    pthread_mutex_unlock(&lock);
    return t ? t->text : NULL;
}

ncclResult_t pncclParamGetStr(ncclParamHandle_t h, const char **out)
{
    char text[VALUE_BYTES];
    const char *copy;

    if (!out || !is_handle(h))
        return null_argument("ncclParamGetStr");
    if (!value_of(h, text))
        return ncclInvalidArgument;
    if (!(copy = kept(text)))
        return ncclSystemError;
    *out = copy;
    return ncclSuccess;
}
NC_TWIN(ParamGetStr);

/* The raw form of a text is its letters and the 0 at its end. */
ncclResult_t pncclParamGet(ncclParamHandle_t h, void *out, int maxLen, int *len)
{
    char text[VALUE_BYTES];

    if (!out || !len || maxLen <= 0 || !is_handle(h))
        return null_argument("ncclParamGet");
    if (!value_of(h, text))
        return ncclInvalidArgument;
    *len = (int)strlen(text) + 1;
    if (*len > maxLen)
        return ncclInvalidArgument;
    memcpy(out, text, (size_t)*len);
    return ncclSuccess;
}
NC_TWIN(ParamGet);

ncclResult_t pncclParamGetParameter(const char *key, const char **value, int *valueLen)
{
    ncclParamHandle_t found;
    char text[VALUE_BYTES];

    if (!key || !value || !valueLen)
        return null_argument("ncclParamGetParameter");
    *value = NULL;
    *valueLen = 0;
    if (!(found = find(key)) || !value_of(found, text))
        return ncclInvalidArgument;
    if (!(*value = kept(text)))
        return ncclSystemError;
    *valueLen = (int)strlen(text);
    return ncclSuccess;
}
NC_TWIN(ParamGetParameter);

ncclResult_t pncclParamGetAllParameterKeys(const char ***table, int *tableLen)
{
    if (!table || !tableLen)
        return null_argument("ncclParamGetAllParameterKeys");
    pthread_once(&once, list);
    *table = keys;
    *tableLen = nparams;
    return ncclSuccess;
}
NC_TWIN(ParamGetAllParameterKeys);

/* On standard output, as in NCCL. */
void pncclParamDumpAll(void)
{
    char text[VALUE_BYTES];

    nc_settings();
    pthread_once(&once, list);
    printf("=== ncclParam Registry Dump ===\n");
    for (int i = 0; i < nparams; i++)
        if (value_of(&params[i], text))
            printf("%s\n    Current value=%s\n", params[i].key, *text ? text : "<unset>");
}
NC_TWIN(ParamDumpAll);
