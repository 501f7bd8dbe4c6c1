// writer.h: what the writer stage promises, and what its parts know of each other: writer.c (the stage),
// writer_check.c (its configuration), writer_dir.c (one folder) and writer_file.c (its files one after the
// other). Its public functions are in dq_writer.h (dq_stage_writer, dq_writer_write, dq_writer_error,
// dq_writer_path).
//
// A writer is a tap: push hands the burst by reference to the thread of one of its dirs, and the burst goes
// on; at most DQI_WRITER_DEPTH bursts wait. With policy drop a writer that is
// behind leaves a quarter of a region's buffers, and of rx_meta_buffers descriptors, to the queue and its
// other consumers. On the virtual clock there is no thread; step does its work.
//
// Dirs: one for each folder, with a thread and files of its own. Each burst goes to the dir with the
// shortest queue, in turn among equals, so that several disks add up and a slow one gets less. A dir that
// can't write gives what it has not begun to another one that can; only when none can do packets count as
// lost.
//
// Ledger: the nodes count `in` and, where the writer was behind, dropped[BEHIND] (pollers' threads). The
// writer counts `in` of what scripts hand to it, `out` (packets that are in a file) and dropped[WRITE_ERROR];
// `held` is what lies in the rings and in buffers. out_bytes: bytes of packets in files, without record
// headers and made-up headers. Extras: FILES, FILE_BYTES, DELETED_FILES, TRUNCATED, and STALL_NS, the time
// for which dirs waited for their disks (0 on the virtual clock).
//
// Quota: what would go beyond it counts as QUOTA, and so does every packet after that.
//
// Memory of GPUs: each dir has staging memory (staging.h), made when a pipe, or a script's burst, first needs
// it. A GPU that is lost fails the writer: packets count as DEVICE_LOST.
//
// Names: nothing that is there is replaced, unless conf.overwrite says so. Where PREFIX and the suffix are
// taken, the run's file is PREFIX_INDEX; indexes go on behind those that are there. A file that a burst names
// (dq_write_names) and that is there fails these packets alone.
//
// Errors: a file ends with its last whole packet whatever happens, the first error's words stay in
// dq_writer_error, and packets count as WRITE_ERROR from then on: for good, except that a full disk or quota
// is tried again every second (where other folders take the packets: once it has some room).
// What no file of the kind can hold counts as WRITE_ERROR too, and harms no others.
#ifndef DQI_WRITER_H
#define DQI_WRITER_H

#include "core/counters.h"
#include "core/histogram.h"
#include "core/ring.h"
#include "core/session.h"
#include "core/wake.h"
#include "writer/packet_files.h"
#include "writer/staged.h"
#include "writer/writer_file.h"

#include <pthread.h>

#define DQI_WRITER_DEPTH    4096       // bursts
#define DQI_WRITER_LAG_NS   200000000  // a packet can be read from the file so long after it came
#define DQI_WRITER_RETRY_NS 1000000000 // after a full disk

// A burst on its way to a file.
typedef struct dqi_entry {
    dq_burst *burst;
    dq_op *op;         // the account that a script wants; NULL
    int64_t pushed_ns; // session time
    uint32_t n_bufs;   // buffers of each of these regions that the burst keeps
    uint32_t n_regions;
    uint16_t regions[DQ_MAX_SEGS];
} dqi_entry;

typedef struct dqi_writer_dir {
    dqi_writer *w;
    const char *dir;
    uint32_t number; // of the dir
    dqi_ring work;   // of entries
    dqi_wake wake;
    _Atomic bool down;              // can't write now
    _Atomic uint64_t files;         // 1 + the index of the last one; 0: none
    _Atomic(dqi_staging *) staging; // NULL: nothing has come from a GPU's memory
    // its thread's own
    dqi_counters c;
    dqi_histogram stalls; // waits for the disk, ns
    dqi_staged staged;
    dqi_dir_file f;
    dqi_packet_files each;
    bool open, threaded;
    bool failed;   // down for good
    bool refused;  // packets, and the words for it are said
    bool timeless; // the note about packets without a time was written
    bool outside;  // the note about times that files can't have was written
    bool remarked; // the note about remarks of a capture that the files leave out was written
    bool indirect; // a file could not be written past the host, which is said
    int err;       // down: why, -errno
    int64_t retry_ns;
    bool dirty, asked; // something waits for a flush; somebody waits for that
    int64_t dirty_ns;  // session time since when
    uint64_t turns;    // of the file, then
    pthread_t thread;
} dqi_writer_dir;

struct dqi_writer {
    dq_session *session;
    dq_writer_conf conf;
    const dqi_format *format;
    dqi_ring idle; // of entries
    _Atomic uint32_t quit, turn;
    _Atomic uint64_t next_file; // its index
    _Atomic uint64_t used;      // bytes, for the quota
    _Atomic bool full;          // nothing more is written
    bool numbered;    // the name without an index is taken: this run's file gets one. Set at the start
    const char *name; // of the stage
    dq_stage *stage;
    dqi_gauge held;                  // packets
    dqi_gauge bufs[DQI_MAX_REGIONS]; // that waiting bursts keep, by region
    dqi_counters handed;             // in, in_bytes, bursts of dq_writer_write; any task adds
    pthread_mutex_t lock;            // of error and list
    pthread_mutex_t reaching;        // of who makes staging memory
    bool reached;                    // there is some, and its way to the files is said
    char error[2048];
    dqi_file_list list;
    dqi_writer_dir dirs[DQ_MAX_DIRS];
    dqi_entry entries[DQI_WRITER_DEPTH];
};

// DQ_OK, or INVALID_PARAMETER with the thing at fault in diag. name: of the stage.
int dqi_writer_check(const char *name, const dq_writer_conf *c, dq_diag *diag);
// The dir that the next burst goes to. Any thread.
dqi_writer_dir *dqi_writer_next_dir(dqi_writer *w);
// Keeps the words of the first error. object: what it is about, NULL: the writer. Any thread.
void dqi_writer_keep_words(dqi_writer *w, const char *object, const char *words);
// From now on the dirs can write what lies where `regions` of a burst do: they get staging memory of their
// GPU.
int dqi_writer_reach(dqi_writer *w, dq_region *const *regions, uint32_t n, dq_diag *diag);
// Says once for each dir why what lies on a GPU could not go to the files past the host. Dir's thread.
void dqi_writer_tell_indirect(dqi_writer_dir *l, const char *why);
// Lets go of the entry and its burst. Any thread.
void dqi_writer_release(dqi_writer *w, dqi_entry *e);

// Checks the dir's folder. Control thread.
int dqi_writer_dir_check(const dqi_writer_dir *l, const char *name, dq_diag *diag);
// Opens the dir's files; name: of the writer, for errors. Control thread.
int dqi_writer_dir_open(dqi_writer_dir *l, const char *name, dq_diag *diag);
// Starts its thread. The system's status.
int dqi_writer_dir_start(dqi_writer_dir *l);
// Waits for the end of its thread, once the writer's quit is set: all that it had is written then.
void dqi_writer_dir_join(dqi_writer_dir *l);
// Writes at most max waiting bursts, or gives them to another dir; their number. Dir's thread, or where
// there is none any.
int dqi_writer_dir_drain(dqi_writer_dir *l, int max);
// Writes what is left and closes the files; all dirs were joined. Fine on a closed dir.
void dqi_writer_dir_close(dqi_writer_dir *l);

#endif
