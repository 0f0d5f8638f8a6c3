/* The calls of a plugin, whatever its version, by one thread at a time. NCCL has a thread for each communicator, which
 * makes that one's connections and polls them, and plugins keep endpoints by thread; with rondo two communicators of
 * one thread may have one endpoint between them, and the thread of networks that linger polls it, too. */
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "netplugin/plug_load.h"

static pthread_mutex_t calling = PTHREAD_MUTEX_INITIALIZER;

static int over(int result)
{
    pthread_mutex_unlock(&calling);
    return result;
}

#define CALL(call) (pthread_mutex_lock(&calling), over(call))

void rd_plug_log(int level, unsigned long flags, const char *file, int line, const char *format, ...)
{
    const rd_log_level_t ours = level == 2 || level == 4 ? RD_LOG_WARN : level == 5 ? RD_LOG_TRACE : RD_LOG_INFO;
    char text[RD_ERROR_BYTES];
    va_list args;

    (void)flags;
    (void)file;
    (void)line;
    if (!rd_log_enabled(ours))
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    text[strcspn(text, "\n")] = '\0';
    rd_log(NULL, ours, "net plugin: %s", text);
}

static int event_ignored(void **event, int kind, void *parent, int64_t id, void *data)
{
    (void)event;
    (void)kind;
    (void)parent;
    (void)id;
    (void)data;
    return 0;
}

int rd_plug_begin(const rd_plug_t *plug, void **context, uint64_t id)
{
    static const rd_plug_export_t *initialised; /* plug_load.c calls first, before which there is no other call */
    rd_plug_config_t config = {RD_PLUG_ANY_CLASS};

    *context = NULL;
    if (plug->version >= 11)
        return CALL(plug->table->init.v11(context, id, &config, rd_plug_log, event_ignored));
    if (initialised == plug->table)
        return 0;
    initialised = plug->table;
    return CALL(plug->version == 10 ? plug->table->init.v10(rd_plug_log, event_ignored)
                                    : plug->table->init.v8(rd_plug_log));
}

int rd_plug_end(const rd_plug_t *plug, void *context)
{
    return plug->version >= 11 && plug->table->finalize ? CALL(plug->table->finalize(context)) : 0;
}

int rd_plug_device(const rd_plug_t *plug, int device, rd_plug_device_t *what)
{
    rd_plug_properties_v8_t eight = {.name = NULL};
    rd_plug_properties_v9_t nine = {.name = NULL};
    int error = CALL(plug->table->properties(device, plug->version == 8 ? (void *)&eight : &nine));

    if (plug->version == 8)
        *what = (rd_plug_device_t){eight.name, eight.pci_path,   eight.memory, eight.offload,
                                   eight.mbps, eight.most_comms, INT_MAX};
    else
        *what = (rd_plug_device_t){nine.name, nine.pci_path,   nine.memory,    nine.offload,
                                   nine.mbps, nine.most_comms, nine.most_bytes};
    if (!what->name)
        what->name = "?";
    return error;
}

int rd_plug_device_named(const rd_plug_t *plug, const char *name, int *device)
{
    const size_t length = strcspn(name, ":"); /* without the port */
    rd_plug_device_t what;

    *device = -1;
    for (int d = 0; d < plug->ndevices && *device < 0; d++) {
        int error = rd_plug_device(plug, d, &what);
        if (error != 0)
            return error;
        if (strlen(what.name) == length && strncmp(what.name, name, length) == 0)
            *device = d;
    }
    return 0;
}

int rd_plug_listen(const rd_plug_t *plug, void *context, int device, void *handle, void **listen)
{
    *listen = NULL;
    return CALL(plug->version >= 11 ? plug->table->listen.v11(context, device, handle, listen)
                                    : plug->table->listen.v8(device, handle, listen));
}

/* The plugin is asked for no offload, and gets a place for its answer all the same. */
int rd_plug_connect(const rd_plug_t *plug, void *context, int device, void *handle, void **send)
{
    rd_plug_config_t config = {RD_PLUG_ANY_CLASS};
    void *offload = NULL;

    if (plug->version >= 11)
        return CALL(plug->table->connect.v11(context, device, handle, send, &offload));
    if (plug->version == 10)
        return CALL(plug->table->connect.v10(device, &config, handle, send, &offload));
    return CALL(plug->table->connect.v8(device, handle, send, &offload));
}

int rd_plug_send(const rd_plug_t *plug, void *comm, void *data, size_t bytes, int tag, void *registration,
                 void **request)
{
    const rd_plug_export_t *t = plug->table;

    *request = NULL;
    if (plug->version >= 10)
        return CALL(t->send.v10(comm, data, bytes, tag, registration, NULL, request));
    if (plug->version == 9)
        return CALL(t->send.v9(comm, data, bytes, tag, registration, request));
    return CALL(t->send.v8(comm, data, (int)bytes, tag, registration, request));
}

int rd_plug_recv(const rd_plug_t *plug, void *comm, void *data, size_t bytes, int tag, void *registration,
                 void **request)
{
    const rd_plug_export_t *t = plug->table;
    void *event = NULL;
    int narrow = (int)bytes;

    *request = NULL;
    if (plug->version >= 10)
        return CALL(t->recv.v10(comm, 1, &data, &bytes, &tag, &registration, &event, request));
    if (plug->version == 9)
        return CALL(t->recv.v9(comm, 1, &data, &bytes, &tag, &registration, request));
    return CALL(t->recv.v8(comm, 1, &data, &narrow, &tag, &registration, request));
}

int rd_plug_count(const rd_plug_t *plug, int *count)
{
    return CALL(plug->table->devices(count));
}

int rd_plug_accept(const rd_plug_t *plug, void *listen, void **recv)
{
    void *offload = NULL;

    *recv = NULL;
    return CALL(plug->table->accept(listen, recv, &offload));
}

int rd_plug_reg(const rd_plug_t *plug, void *comm, void *data, size_t bytes, void **registration)
{
    *registration = NULL;
    return CALL(plug->table->reg(comm, data, bytes, RD_PLUG_HOST, registration));
}

int rd_plug_dereg(const rd_plug_t *plug, void *comm, void *registration)
{
    return CALL(plug->table->dereg(comm, registration));
}

int rd_plug_test(const rd_plug_t *plug, void *request, int *done, int *bytes)
{
    *done = *bytes = 0;
    return CALL(plug->table->test(request, done, bytes));
}

int rd_plug_close_comm(const rd_plug_t *plug, rd_plug_end_t end, void *comm)
{
    const rd_plug_export_t *t = plug->table;
    return CALL((end == RD_PLUG_END_SEND   ? t->close_send
                 : end == RD_PLUG_END_RECV ? t->close_recv
                                           : t->close_listen)(comm));
}

const char *rd_plug_failure(const char *call, int error, char *text, size_t size)
{
    static const char *const says[] = {"success",          "CUDA error",    "system error", "internal error",
                                       "invalid argument", "invalid usage", "remote error", "in progress"};
    const char *what = error >= 0 && error < (int)(sizeof says / sizeof says[0]) ? says[error] : "unknown error";

    snprintf(text, size, "%s: %s (%d)", call, what, error);
    return text;
}
