// entry.c: the library's entry point: compares the seals and returns the driver.
#include "dpdk.h"
#include "gpu.h"

#include <string.h>

const dqi_dpdk_host *host;

__attribute__((visibility("default"))) const dqi_dpdk_driver *dqi_dpdk_entry(const dqi_dpdk_host *h) {
    static const dqi_dpdk_driver driver = {
        .port =
            {
                .name = "DPDK",
                .open = port_open,
                .start = port_start,
                .stop = port_stop,
                .close = port_close,
                .read = rx_read,
                .release = rx_release,
                .tx_open = port_tx_open,
                .regions = &memory_regions,
                .tx = tx_send,
                .arm_rx = kernel_arm,
                .refresh = port_refresh,
                .steer = port_steer,
                .mac = port_mac,
                .mtu = port_mtu,
                .set_rx_macs = port_set_rx_macs,
            },
        .seal = DQI_DPDK_SEAL,
        .receive = rx_receive,
        .reaches_gpu = gpu_reaches,
    };
    if (memcmp(&h->seal, &driver.seal, sizeof h->seal) != 0) return NULL;
    host = h;
    return &driver;
}
