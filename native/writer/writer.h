// writer.h: behaviour of the writer stage, and interfaces of its parts: writer.c (stage), writer_check.c
// (configuration), writer_dir.c (one folder) and writer_file.c (its contiguous files). Public functions are
// in dq_writer.h (dq_stage_writer, dq_writer_write, dq_writer_error, dq_writer_path).
//
// A writer is a tap: push passes a reference to the thread of one of its dirs, and the burst continues in the
// pipe; at most DQI_WRITER_DEPTH bursts are queued. With policy drop a writer that is behind leaves a quarter
// of a region's buffers, and of rx_meta_buffers descriptors, to the queue and its other consumers. On the
// virtual clock there is no thread; dq_step does its work.
//
// Dirs: one per folder, with a thread and files of its own. Each burst goes to the dir with the shortest
// queue, round robin among equals, so that several disks add up and a slow one gets less. A dir that can't
// write passes waiting bursts to one that can; packets count as lost only if none can.
//
// Ledger: the nodes count `in` and dropped[BEHIND] (pollers' threads). The writer counts `in` of bursts from
// scripts, `out` (packets in a file) and dropped[WRITE_ERROR]; `held` counts packets in rings and buffers.
// out_bytes: packet bytes in files, without record headers and generated headers. Extras: FILES, FILE_BYTES,
// DELETED_FILES, TRUNCATED, and STALL_NS, the time dirs waited for their disks (0 on the virtual clock).
//
// Quota: packets that would exceed it count as QUOTA, and so do all later ones.
//
// GPU memory: each dir has staging memory (staging.h), allocated when a pipe or a burst from a script first
// needs it. A lost GPU fails the writer: packets count as DEVICE_LOST.
//
// Names: existing files are not replaced unless conf.overwrite is set. If PREFIX and the suffix exist, the
// run's file is PREFIX_INDEX; indexes continue after existing ones. If a file named by a burst
// (dq_write_names) exists, only its packets fail.
//
// Errors: a file always ends with its last complete packet, dq_writer_error keeps the first error, and
// packets count as WRITE_ERROR from then on: permanently, except that a full disk or quota is retried every
// second (if other folders take the packets: once there is some space). Packets that the format can't
// represent count as WRITE_ERROR without affecting others.
#ifndef DQI_WRITER_H
#define DQI_WRITER_H

#include "core/counters.h"
#include "core/histogram.h"
#include "core/ring.h"
#include "core/wake.h"
#include "pipeline/session.h"
#include "writer/packet_files.h"
#include "writer/staged.h"
#include "writer/writer_file.h"

#include <pthread.h>

#define DQI_WRITER_DEPTH    4096       // bursts
#define DQI_WRITER_LAG_NS   200000000  // maximum delay of a packet until it is readable in the file
#define DQI_WRITER_RETRY_NS 1000000000 // after a full disk

// A burst queued for a file.
typedef struct dqi_entry {
    dq_burst *burst;
    dq_op *op;         // operation of a script's burst; NULL
    int64_t pushed_ns; // session time
    uint32_t n_bufs;   // buffers taken by the burst from each of these regions
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
    _Atomic uint64_t files;         // 1 + index of the last file; 0: none
    _Atomic(dqi_staging *) staging; // NULL: no data in a GPU's memory so far
    // its thread only
    dqi_counters c;
    dqi_histogram stalls; // waits for the disk in ns
    dqi_staged staged;
    dqi_dir_file f;
    dqi_packet_files each;
    bool open, threaded;
    bool failed;   // permanently down
    bool refused;  // it rejects packets, and the error was reported
    bool timeless; // the note about packets without a time was written
    bool outside;  // the note about times outside the format's range was written
    bool remarked; // the note about capture metadata omitted from the files was written
    bool indirect; // the note about a file that needs copies by the host was written
    int err;       // reason for down, -errno
    int64_t retry_ns;
    bool dirty, asked; // data wait for a flush; a script waits for it
    int64_t dirty_ns;  // session time since when
    uint64_t turns;    // of the file at that time
    pthread_t thread;
} dqi_writer_dir;

struct dqi_writer {
    dq_session *session;
    dq_writer_conf conf;
    const dqi_format *format;
    dqi_ring idle; // of entries
    _Atomic uint32_t quit, turn;
    _Atomic uint64_t next_file; // index of the next file
    _Atomic uint64_t used;      // bytes, for the quota
    _Atomic bool full;          // the quota is exhausted
    bool numbered;              // the name without index exists: this run's file gets one. Set at the start
    const char *name;           // of the stage
    dq_stage *stage;
    dqi_gauge held;                  // packets
    dqi_gauge bufs[DQI_MAX_REGIONS]; // used by queued bursts, per region
    dqi_counters handed;             // in, in_bytes, bursts of dq_writer_write; any task adds
    pthread_mutex_t lock;            // protects error and list
    pthread_mutex_t reaching;        // serializes allocation of staging memory
    bool reached;                    // it is allocated, and the transfer was reported
    char error[2048];
    dqi_file_list list;
    dqi_writer_dir dirs[DQ_MAX_DIRS];
    dqi_entry entries[DQI_WRITER_DEPTH];
};

// Checks the configuration: DQ_OK, or INVALID_PARAMETER with the invalid item in diag. name: of the stage.
int dqi_writer_check(const char *name, const dq_writer_conf *c, dq_diag *diag);
// Returns the dir for the next burst. Any thread.
dqi_writer_dir *dqi_writer_next_dir(dqi_writer *w);
// Records the text of the first error. object: its subject, NULL: the writer. Any thread.
void dqi_writer_keep_words(dqi_writer *w, const char *object, const char *words);
// Allocates staging memory for the dirs, for regions of a burst that are on a GPU.
int dqi_writer_reach(dqi_writer *w, dq_region *const *regions, uint32_t n, dq_diag *diag);
// Reports once per dir why data on a GPU could not be written without the host. Dir's thread.
void dqi_writer_note_indirect(dqi_writer_dir *l, const char *why);
// Releases the entry and its burst. Any thread.
void dqi_writer_release(dqi_writer *w, dqi_entry *e);

// Checks the dir's folder. Control thread.
int dqi_writer_dir_check(const dqi_writer_dir *l, const char *name, dq_diag *diag);
// Opens the dir's files; name: of the writer, for errors. Control thread.
int dqi_writer_dir_open(dqi_writer_dir *l, const char *name, dq_diag *diag);
// Starts the dir's thread. Returns the system's status.
int dqi_writer_dir_start(dqi_writer_dir *l);
// Waits for the dir's thread to end, after the writer's quit is set: its bursts are then written.
void dqi_writer_dir_join(dqi_writer_dir *l);
// Writes at most max queued bursts, or passes them to another dir; returns their number. Dir's thread, or any
// if it has none.
int dqi_writer_dir_drain(dqi_writer_dir *l, int max);
// Writes remaining data and closes the files; all dirs have been joined. A closed dir is allowed.
void dqi_writer_dir_close(dqi_writer_dir *l);

#endif
