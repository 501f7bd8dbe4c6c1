// writer.h: what the writer stage promises; its functions are in dq.h (dq_stage_writer, dq_writer_error,
// dq_writer_path).
//
// A writer is a tap: push hands the burst by reference to the writer's own thread, through a ring of
// DQI_WRITER_DEPTH bursts, and the burst goes on. With policy drop a writer that is
// behind leaves a quarter of a region's buffers, and of rx_meta_buffers descriptors, to the queue and its
// other consumers. On the virtual clock there is no thread; step does its work.
//
// Ledger: the nodes count `in` and, where the writer was behind, dropped[BEHIND] (pollers' threads). The
// writer counts `out` (packets that are in a file) and dropped[WRITE_ERROR]; `held` is what lies in the ring
// and in the file's block. out_bytes: bytes of packets in files, without record headers and made-up headers.
// Extras: FILES, FILE_BYTES, TRUNCATED, and STALL_NS, the time spent in the system's calls (0 on the virtual
// clock).
//
// Errors: a file ends with its last whole packet whatever happens, the first error's words stay in
// dq_writer_error, and packets count as WRITE_ERROR from then on: for good, except that a full disk or quota
// is tried again every second.
#ifndef DQI_WRITER_H
#define DQI_WRITER_H

#define DQI_WRITER_DEPTH    4096       // bursts
#define DQI_WRITER_LAG_NS   200000000  // a packet can be read from the file so long after it came
#define DQI_WRITER_RETRY_NS 1000000000 // after a full disk

#endif
