// types.h: what a kernel finds in a burst that it was given ("burst"); in front of its source, on a GPU and
// on the host.
typedef struct daqiri_packet {
    unsigned char *data;
    unsigned int bytes, flow; /* flow: its id, 0: none */
} daqiri_packet;
typedef struct daqiri_burst {
    unsigned int packets, segments;
    const daqiri_packet *at; /* segment s of packet i: at[i * segments + s] */
} daqiri_burst;
