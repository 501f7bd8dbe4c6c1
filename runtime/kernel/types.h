// types.h: layout of the special argument "burst"; prepended to kernel sources for a GPU and for the host.
typedef struct daqiri_packet {
    unsigned char *data;
    unsigned int bytes, flow; /* flow: its id, 0: none */
} daqiri_packet;
typedef struct daqiri_burst {
    unsigned int packets, segments;
    const daqiri_packet *at; /* segment s of packet i: at[i * segments + s] */
} daqiri_burst;
