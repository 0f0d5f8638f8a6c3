/* What kernels and the host say to each other while kernels run. A part of work.h, in plain C. */
#ifndef RD_KERNELS_HOST_WORDS_H
#define RD_KERNELS_HOST_WORDS_H

#include <stdint.h>

/* Words in pinned host memory that kernels and host share. Each rank of each communicator has one. */
typedef struct rd_khost {
    uint32_t abort;      /* written by the host; nonzero: kernels leave every wait and end */
    uint32_t timeout_ms; /* written by the host: a wait that lasts longer ends the kernel; 0: waits have no limit */
    uint32_t failed;     /* written by a kernel that left without having finished: RD_KFAILED_... */
    uint32_t late;       /* the peer that the kernel waited for; written before `failed` (RD_KFAILED_TIMEOUT, ...) */
    uint32_t released;   /* written by the host; nonzero: RD_KERNEL_STALL ends */
    uint32_t wait[4];    /* written again and again by a kernel that has waited RD_KSLOW_MS: see RD_KWAIT */
} rd_khost_t;

#define RD_KSLOW_MS 100

/* The words of a wait. Several warps may write them, so two words name the peer, and two the call: what does not fit
 * together is not believed. */
#define RD_KWAIT_CALL 0      /* rd_kcomm_t's `call`, of the kernel that waits */
#define RD_KWAIT_PEER_CALL 1 /* RD_KWAIT_BEGUN(peer, `call` of the kernel that it has begun last, or 0) */
#define RD_KWAIT_PEER 2      /* RD_KWAIT(peer, call), written last; the host sets it 0 when it has read it */
#define RD_KWAIT_EPOCHS 3    /* RD_KWAIT_BEHIND(peer, by how many epochs it is), where the kernel's call has an epoch */
#define RD_KWAIT(peer, call) ((((uint32_t)(peer) + 1) << 14) | ((call)&0x3fffu))
#define RD_KWAIT_BEGUN(peer, call) (((call)&0x80ffffffu) | ((uint32_t)(peer)&0x7fu) << 24)
#define RD_KWAIT_BEHIND(peer, epochs) (((uint32_t)(epochs)&0xffffffu) | ((uint32_t)(peer)&0x7fu) << 24)

#define RD_KFAILED_ABORT 1u
#define RD_KFAILED_TIMEOUT 2u
#define RD_KFAILED_POST 3u     /* a peer's post names no registered buffer, or bytes outside one */
#define RD_KFAILED_DIFFERS 4u  /* rank `late` has come to a barrier with another mark */
#define RD_KFAILED_LEFT 5u     /* rank `late` has left an operation before this rank had read its buffer */
#define RD_KFAILED_ARGUMENT 6u /* a kernel of the program's has asked for what does not exist: RD_KNO_... in `late` */
#define RD_KNO_BARRIER 0u      /* rondo_device.cuh has these numbers, too, and those of rd_khost_t's words: see */
#define RD_KNO_SIGNAL 1u       /* test/gpu/device_kernels.cu */
#define RD_KNO_RANK 2u
#define RD_KNO_BYTES 3u

#endif
