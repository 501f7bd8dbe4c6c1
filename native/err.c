// err.c: the words for statuses, drop reasons and further figures, each in one table that the summary, JSON
// and Lua share.

#include "dq.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const err_names[] = {
    "SUCCESS",         "NULL_PTR",          "NO_FREE_BURST_BUFFERS", "NO_FREE_PACKET_BUFFERS",
    "NOT_READY",       "INVALID_PARAMETER", "NO_SPACE_AVAILABLE",    "NOT_SUPPORTED",
    "GENERIC_FAILURE", "CONNECT_FAILURE",   "INTERNAL_ERROR",
};

const char *dq_err_name(int err) {
    if (err >= DQ_OK) return err_names[0];
    if (-err < (int)(sizeof err_names / sizeof *err_names)) return err_names[-err];
    return err < DQ_ESYS ? strerror(DQ_ESYS - err) : "UNKNOWN";
}

int dqi_fail(dq_diag *diag, int err, const char *fmt, ...) {
    if (diag) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(diag->text, sizeof diag->text, fmt, ap);
        va_end(ap);
    }
    return err;
}

static const struct {
    const char *name, *text;
} reasons[DQ_REASONS] = {
    [DQ_DROP_NO_PACKET_BUFFER] =
        {"no_packet_buffer", "the memory region had no free buffer: raise num_bufs or free bursts sooner"},
    [DQ_DROP_NO_BURST_BUFFER] = {"no_burst_buffer",
                                 "no free burst descriptor: raise rx_meta_buffers or free bursts sooner"},
    [DQ_DROP_QUEUE_FULL] = {"queue_full", "the queue's ring was full: its reader is too slow"},
    [DQ_DROP_TOO_LONG] =
        {"too_long",
         "longer than its place, a buffer or slot, or than the interface takes: raise buf_size or the MTU"},
    [DQ_DROP_NO_FLOW] =
        {"no_flow", "no flow matched and flow_isolation is on, or a replayed frame was not for the socket"},
    [DQ_DROP_DROP_ALL] = {"drop_all", "drop_all_traffic was on"},
    [DQ_DROP_WIRE_LOSS] = {"wire_loss", "lost by the simulated wire"},
    [DQ_DROP_FILTERED] = {"filtered", "refused by the filter"},
    [DQ_DROP_NOT_SAMPLED] = {"not_sampled", "left out by the sampler"},
    [DQ_DROP_BEHIND] = {"behind", "the consumer was behind and its policy is drop"},
    [DQ_DROP_WRITE_ERROR] = {"write_error", "the file, or the object, could not be written"},
    [DQ_DROP_QUOTA] = {"quota", "the writer's quota is used up"},
    [DQ_DROP_SEND_ERROR] = {"send_error", "the system refused to send it"},
    [DQ_DROP_NO_PEER] = {"no_peer", "there was nobody to send it to"},
    [DQ_DROP_BAD_FRAMING] = {"bad_framing", "the stream's framing made no sense"},
    [DQ_DROP_FLUSHED] = {"flushed", "thrown away by flush"},
    [DQ_DROP_NO_CONSUMER] = {"no_consumer", "no pipe or handler of the queue took it"},
    [DQ_DROP_BAD_TUNNEL] = {"bad_tunnel",
                            "a length or a checksum of the headers that its flow takes off is wrong"},
    [DQ_DROP_LATE] = {"late", "its batch had been handed over: a larger window or timeout_us waits longer"},
    [DQ_DROP_TOO_EARLY] = {"too_early", "its number was far ahead of the others' and not believed yet"},
    [DQ_DROP_DUPLICATE] = {"duplicate", "its place in the batch was taken already"},
    [DQ_DROP_BAD_PLACE] =
        {"bad_place",
         "it has no place in a batch: a field is absent, or slot or offset are outside; or no payload"},
    [DQ_DROP_BAD_PAYLOAD] = {"bad_payload", "its payload is no whole number of elements of input_type"},
    [DQ_DROP_INCOMPLETE] = {"incomplete", "its batch was not complete, and missing_action is drop"},
    [DQ_DROP_FRAGMENT] = {"fragment", "a piece of a datagram: a capture's are not joined"},
    [DQ_DROP_JOINED] =
        {"joined",
         "several packets that were joined to one on the way: ethtool -K DEVICE gro off lro off, and "
         "where a kernel sends over veth, tso off gso off there"},
    [DQ_DROP_CUT] = {"cut", "the capture has not all of the datagram: record it with a larger snaplen"},
    [DQ_DROP_STOPPED] = {"stopped",
                         "came or was queued before the stop, and not taken or sent in the time left"},
};

const char *dq_reason_name(int reason) {
    return reason >= 0 && reason < DQ_REASONS ? reasons[reason].name : NULL;
}

const char *dq_reason_text(int reason) {
    return reason >= 0 && reason < DQ_REASONS ? reasons[reason].text : NULL;
}

const char *dq_stamps_name(int stamps) {
    static const char *const names[DQ_STAMPS] = {[DQ_STAMPS_SOFTWARE] = "software",
                                                 [DQ_STAMPS_KERNEL] = "kernel",
                                                 [DQ_STAMPS_HARDWARE] = "hardware",
                                                 [DQ_STAMPS_VIRTUAL] = "virtual",
                                                 [DQ_STAMPS_FILE] = "file"};
    return stamps >= 0 && stamps < DQ_STAMPS ? names[stamps] : NULL;
}

static const char *const extras[DQ_EXTRAS] = {
    [DQ_EXTRA_COPIED] = "copied",
    [DQ_EXTRA_DUPLICATED] = "duplicated",
    [DQ_EXTRA_CORRUPTED] = "corrupted",
    [DQ_EXTRA_REORDERED] = "reordered",
    [DQ_EXTRA_KERNEL_DROPPED] = "kernel_dropped",
    [DQ_EXTRA_KERNEL_DROPPED_SUPER] = "kernel_dropped_super",
    [DQ_EXTRA_SYSCALLS] = "syscalls",
    [DQ_EXTRA_FILES] = "files",
    [DQ_EXTRA_FILE_BYTES] = "file_bytes",
    [DQ_EXTRA_DELETED_FILES] = "deleted_files",
    [DQ_EXTRA_STALL_NS] = "stall_ns",
    [DQ_EXTRA_TRUNCATED] = "truncated",
    [DQ_EXTRA_TIMED] = "timed",
    [DQ_EXTRA_LATE] = "late",
    [DQ_EXTRA_REFUSED] = "refused",
    [DQ_EXTRA_TRANSFORMED] = "transformed",
    [DQ_EXTRA_NIC_MISSED] = "nic_missed",
    [DQ_EXTRA_NIC_NO_BUFFER] = "nic_no_buffer",
    [DQ_EXTRA_NIC_RX_ERRORS] = "nic_rx_errors",
    [DQ_EXTRA_NIC_TX_ERRORS] = "nic_tx_errors",
    [DQ_EXTRA_ANSWERED] = "answered",
    [DQ_EXTRA_UNANSWERED] = "unanswered",
    [DQ_EXTRA_LOOPS] = "loops",
    [DQ_EXTRA_BAD_RECORDS] = "bad_records",
    [DQ_EXTRA_BATCHES] = "batches",
    [DQ_EXTRA_PARTIAL] = "partial",
    [DQ_EXTRA_TIMEOUTS] = "timeouts",
    [DQ_EXTRA_PUSHED] = "pushed",
    [DQ_EXTRA_SKIPPED] = "skipped",
    [DQ_EXTRA_EXPECTED] = "expected",
    [DQ_EXTRA_MISSING] = "missing",
    [DQ_EXTRA_CUT] = "cut",
    [DQ_EXTRA_RESYNCS] = "resyncs",
    [DQ_EXTRA_OBJECTS] = "objects",
    [DQ_EXTRA_RETRIES] = "retries",
};

const char *dq_extra_name(int extra) { return extra >= 0 && extra < DQ_EXTRAS ? extras[extra] : NULL; }
