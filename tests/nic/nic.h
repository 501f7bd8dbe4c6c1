// nic.h: what the parts of the emulated network card know of each other.
#ifndef NIC_H
#define NIC_H

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdbool.h>

#define NIC_PORTS  8
#define NIC_QUEUES 16
#define NIC_PARTS  4

typedef uint16_t nic_burst(void *queue, struct rte_mbuf **frames, uint16_t n);

// A queue of a device that has started.
typedef struct nic_queue {
    void *data; // by which the driver's burst function knows it
    nic_burst *driver;
    uint16_t port;
    struct rte_eth_rxseg_split parts[NIC_PARTS];
    uint16_t n_parts; // 0: frames are not split
} nic_queue;

// What a device was asked for when it was configured.
typedef struct nic_asked {
    bool stamps, waits, sums;
} nic_asked;

// The function of DPDK's that one of this library's stands in front of.
void *nic_next(const char *name);
#define NIC_NEXT(name) ((__typeof__(&name))nic_next(#name))

// Whether the device has this feature.
bool nic_has(const char *feature);
_Noreturn void nic_die(const char *what);

// ---- split.c ----------------------------------------------------------------------------------------------

// Stores the description of a receive queue's parts; returns the pool that the driver is to receive into.
struct rte_mempool *nic_split_set_up(nic_queue *q, uint16_t port, uint16_t index,
                                     const struct rte_eth_rxconf *conf);
// The same of a queue whose frames go whole into one pool, in memory that the driver doesn't reach.
struct rte_mempool *nic_whole_set_up(nic_queue *q, uint16_t port, uint16_t index, struct rte_mempool *mp);
// The frame cut into buffers of the parts' pools, in its place; NULL: there are none, it is lost.
struct rte_mbuf *nic_split(const nic_queue *q, struct rte_mbuf *m);

// ---- gpu.c ------------------------------------------------------------------------------------------------

// Where the card writes so many bytes that are for there: an address of the host's, or of a GPU's.
void *nic_reach(void *at, size_t bytes);

// ---- flow.c -----------------------------------------------------------------------------------------------

// Does with a received frame what the rules say: marks it, takes headers off. sums: checks the checksums of
// what it takes off. False: the card is isolated, and no rule wants it.
bool nic_steer(uint16_t port, struct rte_mbuf *m, bool sums);

// ---- times.c ----------------------------------------------------------------------------------------------

// Stamps received frames with the card's clock, and writes the true time of each into the record.
void nic_stamp(struct rte_mbuf **frames, uint16_t n);
// Takes frames that are to leave by q, in order, each at its time: how many there is room for.
uint16_t nic_hold(nic_queue *q, struct rte_mbuf **frames, uint16_t n);
// What is still there is lost.
void nic_hold_end(uint16_t port);
// A line of the record, with a number; 0: without.
void nic_write_down(const char *what, int64_t number);

#endif
