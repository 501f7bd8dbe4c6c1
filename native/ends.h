// ends.h: what stands at the start of the headroom of a datagram that came through a socket: its two ends.
#ifndef DQI_ENDS_H
#define DQI_ENDS_H

#include <netinet/in.h>

typedef struct dqi_ends {
    struct sockaddr_in6 peer; // as dqi_burst_peer_addr has it
    int32_t to_family;        // AF_INET, AF_INET6, or 0: to is not known
    uint8_t to[16];           // the address that it was sent to
} dqi_ends;

#endif
