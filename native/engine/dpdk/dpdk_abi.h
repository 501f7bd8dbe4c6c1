// dpdk_abi.h: ABI between this binary and libdaqiri_dpdk.so (native/engine/dpdk/plugin/), which is loaded
// when a dpdk interface is opened: linking libdpdk would tie the binary to one distribution's ABI.
//
// Both sides are compiled from one source tree; the seal detects a mismatch.
#ifndef DQI_DPDK_ABI_H
#define DQI_DPDK_ABI_H

#include "core/atomics.h"
#include "core/counters.h"
#include "engine/ethernet/ethernet.h"
#include "pipeline/iface.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"

#define DQI_DPDK_ABI   13
#define DQI_DPDK_ENTRY "dqi_dpdk_entry"

// Values that must be equal on both sides.
typedef struct dqi_dpdk_seal {
    uint32_t abi, session, iface, queue, burst, region, port, piece; // ABI version; sizes in bytes
} dqi_dpdk_seal;

#define DQI_DPDK_SEAL                                                                                        \
    {                                                                                                        \
        DQI_DPDK_ABI, sizeof(dq_session), sizeof(dq_iface), sizeof(dq_queue), sizeof(dq_burst),              \
            sizeof(dq_region), sizeof(dqi_port), sizeof(dqi_piece)                                           \
    }

// Engine functions called by the driver.
typedef struct dqi_dpdk_host {
    dqi_dpdk_seal seal;
    int (*fail)(dq_diag *diag, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
    void (*note)(dq_session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
    uint32_t (*bufs_alloc)(dq_region *r, uint32_t *ids, uint32_t n);
    uint32_t (*bufs_some)(dq_region *r, uint32_t *ids, uint32_t n);
    void (*bufs_free)(dq_session *s, const uint32_t *ids, uint32_t n);
    void (*unref)(dq_burst *b);
    void (*drop)(dqi_counters *c, dq_reason why, uint64_t n);
    int64_t (*now)(const dq_session *s);
    const struct dqi_acts *(*rx_actions_of)(const dq_iface *i, uint64_t order);      // actions.h
    void (*layers_outer)(const dq_rule *r, const struct dqi_acts *a, dq_match *out); // layers.h
    void (*queue_error)(dqi_queue_error errors[DQI_QUEUE_ERRORS], int err, uint64_t n);
} dqi_dpdk_host;

typedef struct dqi_dpdk_driver {
    dqi_dpdk_seal seal;
    dqi_port_driver port;
    // Appends at most room packets of device queue 0 to b, directly into its columns or as handles; only if
    // port->direct. Returns the number added.
    uint32_t (*receive)(dqi_port *p, dq_burst *b, uint32_t room);
    // See dqi_engine_ops.reaches_gpu.
    bool (*reaches_gpu)(const dq_iface *i, const dq_queue *q, uint32_t seg, uint8_t *at, uint64_t bytes,
                        dq_diag *why);
} dqi_dpdk_driver;

// The library's only symbol. Returns a static driver, or NULL if the seals differ.
typedef const dqi_dpdk_driver *dqi_dpdk_entry_fn(const dqi_dpdk_host *host);

#endif
