/* See played_get.h. A key says whose memory it is and where; the kernel copies. Some are there at once, the others come
 * after a few looks at the worker, in another order than they were asked for; what a closed connection has left, too,
 * or not at all. A key that UCX would not take, or to other memory than is fetched, fails the connection. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "util/played_get.h"
#include "ucx/ucx.h"

#define MAGIC UINT64_C(0x706c61796564)
#define MOST 512

typedef struct key {
    uint64_t magic, address, bytes;
    int64_t pid;
} played_key_t;

typedef struct get {
    ucp_ep_h ep; /* NULL: closed */
    ucp_worker_h worker;
    played_key_t key;
    char *data;
    uint64_t address;
    size_t bytes;
    ucp_request_param_t param;
    int looks; /* until it is there */
    struct get *next;
} get_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static get_t *gets;       /* under way */
static get_t *done[MOST]; /* their requests are yet to be freed */
static struct {
    ucp_ep_h ep;
    ucp_worker_h worker;
} made[MOST];
static _Atomic int keys, requests, got;
static _Atomic unsigned turn;

static rd_ucp_t ucx; /* UCX's own functions */

bool rd_ucx_fetches_host(void)
{
    return true;
}

int played_get_left(void)
{
    return keys + requests;
}

int played_got(void)
{
    return got;
}

/* ---- the memory's side */

static ucs_status_t played_mem_map(ucp_context_h context, const ucp_mem_map_params_t *params, ucp_mem_h *memh)
{
    played_key_t *key = malloc(sizeof *key);
    (void)context;
    *key = (played_key_t){MAGIC, (uint64_t)(uintptr_t)params->address, params->length, getpid()};
    *memh = (ucp_mem_h)(void *)key;
    keys++;
    return UCS_OK;
}

static ucs_status_t played_mem_unmap(ucp_context_h context, ucp_mem_h memh)
{
    (void)context;
    keys--;
    free(memh);
    return UCS_OK;
}

static ucs_status_t played_rkey_pack(ucp_context_h context, ucp_mem_h memh, void **packed, size_t *bytes)
{
    (void)context;
    *packed = memcpy(malloc(sizeof(played_key_t)), (void *)memh, sizeof(played_key_t));
    *bytes = sizeof(played_key_t);
    keys++;
    return UCS_OK;
}

static void played_rkey_buffer_release(void *packed)
{
    keys--;
    free(packed);
}

/* ---- the side that fetches */

static ucs_status_t played_ep_rkey_unpack(ucp_ep_h ep, const void *packed, ucp_rkey_h *rkey)
{
    played_key_t key;
    memcpy(&key, packed, sizeof key);
    if (ep == NULL || key.magic != MAGIC) {
        return UCS_ERR_INVALID_PARAM;
    }
    *rkey = memcpy(malloc(sizeof key), &key, sizeof key);
    keys++;
    return UCS_OK;
}

static void played_rkey_destroy(ucp_rkey_h rkey)
{
    keys--;
    free(rkey);
}

static ucs_status_t copy(const get_t *g)
{
    const struct iovec here = {g->data, g->bytes}, there = {(void *)(uintptr_t)g->address, g->bytes};
    if (g->address < g->key.address || g->address + g->bytes > g->key.address + g->key.bytes) {
        fprintf(stderr, "played_get: %zu bytes at %llx are not the key's\n", g->bytes, (unsigned long long)g->address);
        return UCS_ERR_INVALID_ADDR;
    }
    if (process_vm_readv((pid_t)g->key.pid, &here, 1, &there, 1, 0) != (ssize_t)g->bytes) {
        return UCS_ERR_ENDPOINT_TIMEOUT;
    }
    got++;
    return UCS_OK;
}

static ucp_worker_h worker_of(ucp_ep_h ep)
{
    int i = 0;
    while (made[i].ep != ep) {
        i++;
    }
    return made[i].worker;
}

static ucs_status_ptr_t played_get_nbx(ucp_ep_h ep, void *data, size_t bytes, uint64_t address, ucp_rkey_h rkey,
                                       const ucp_request_param_t *param)
{
    get_t *g = malloc(sizeof *g);
    *g = (get_t){.ep = ep, .data = data, .bytes = bytes, .address = address, .param = *param};
    memcpy(&g->key, (void *)rkey, sizeof g->key);
    g->looks = (int)(turn++ * 7 % 5);
    if (turn % 8 == 0) {
        ucs_status_t status = copy(g);
        free(g);
        return status == UCS_OK ? NULL : UCS_STATUS_PTR(status);
    }
    pthread_mutex_lock(&lock);
    g->worker = worker_of(ep);
    g->next = gets;
    gets = g;
    pthread_mutex_unlock(&lock);
    requests++;
    return g;
}

/* The next one of the worker that is due; NULL: none is. */
static get_t *due(ucp_worker_h worker)
{
    get_t **at = &gets, *g = NULL;
    pthread_mutex_lock(&lock);
    while (*at != NULL && ((*at)->worker != worker || (*at)->looks > 0)) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        g = *at;
        *at = g->next;
        int i = 0;
        while (done[i] != NULL) {
            i++;
        }
        done[i] = g;
    }
    pthread_mutex_unlock(&lock);
    return g;
}

static unsigned played_worker_progress(ucp_worker_h worker)
{
    unsigned events = ucx.worker_progress(worker);
    get_t *g;
    pthread_mutex_lock(&lock);
    for (g = gets; g != NULL; g = g->next) {
        g->looks -= g->worker == worker;
    }
    pthread_mutex_unlock(&lock);
    while ((g = due(worker)) != NULL) {
        ucs_status_t status = g->ep == NULL && turn++ % 2 ? UCS_ERR_CANCELED : copy(g);
        g->param.cb.send(g, status, g->param.user_data);
        events++;
    }
    return events;
}

static void played_request_free(void *request)
{
    int ours = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST && requests != 0 && !ours; i++) {
        ours = done[i] == request;
        done[i] = ours ? NULL : done[i];
    }
    pthread_mutex_unlock(&lock);
    if (!ours) {
        ucx.request_free(request);
        return;
    }
    requests--;
    free(request);
}

/* ---- connections */

static ucs_status_t played_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep)
{
    ucs_status_t status = ucx.ep_create(worker, params, ep);
    int i = 0;
    pthread_mutex_lock(&lock);
    while (status == UCS_OK && made[i].ep != NULL) {
        i++;
    }
    if (status == UCS_OK) {
        made[i].ep = *ep;
        made[i].worker = worker;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static ucs_status_ptr_t played_ep_close_nbx(ucp_ep_h ep, const ucp_request_param_t *param)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST; i++) {
        made[i].ep = made[i].ep == ep ? NULL : made[i].ep;
    }
    for (get_t *g = gets; g != NULL; g = g->next) {
        g->ep = g->ep == ep ? NULL : g->ep;
    }
    pthread_mutex_unlock(&lock);
    return ucx.ep_close_nbx(ep, param);
}

void rd_ucx_loaded(rd_ucp_t *ucp)
{
    ucx = *ucp;
    ucp->mem_map = played_mem_map;
    ucp->mem_unmap = played_mem_unmap;
    ucp->rkey_pack = played_rkey_pack;
    ucp->rkey_buffer_release = played_rkey_buffer_release;
    ucp->ep_rkey_unpack = played_ep_rkey_unpack;
    ucp->rkey_destroy = played_rkey_destroy;
    ucp->get_nbx = played_get_nbx;
    ucp->worker_progress = played_worker_progress;
    ucp->request_free = played_request_free;
    ucp->ep_create = played_ep_create;
    ucp->ep_close_nbx = played_ep_close_nbx;
}
