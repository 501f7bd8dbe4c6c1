// format.c: table of file formats.
#include "writer/format.h"

extern const dqi_format dqi_format_pcap, dqi_format_pcapng, dqi_format_raw_packets, dqi_format_raw_bursts,
    dqi_format_flat, dqi_format_blocks, dqi_format_sigmf, dqi_format_dada, dqi_format_guppi, dqi_format_zarr;

static const dqi_format *const formats[] = {
    [DQ_WRITE_PCAP] = &dqi_format_pcap,
    [DQ_WRITE_RAW_FILE] = &dqi_format_flat,
    [DQ_WRITE_RAW_PACKETS] = &dqi_format_raw_packets,
    [DQ_WRITE_RAW_BURSTS] = &dqi_format_raw_bursts,
    [DQ_WRITE_PCAPNG] = &dqi_format_pcapng,
    [DQ_WRITE_BLOCKS] = &dqi_format_blocks,
    [DQ_WRITE_SIGMF] = &dqi_format_sigmf,
    [DQ_WRITE_DADA] = &dqi_format_dada,
    [DQ_WRITE_GUPPI] = &dqi_format_guppi,
    [DQ_WRITE_ZARR] = &dqi_format_zarr,
};

const dqi_format *dqi_format_of(int kind) {
    return kind >= 0 && (size_t)kind < sizeof formats / sizeof *formats ? formats[kind] : NULL;
}

const dq_format *dq_format_of(int kind) {
    const dqi_format *f = dqi_format_of(kind);
    return f ? &f->about : NULL;
}
