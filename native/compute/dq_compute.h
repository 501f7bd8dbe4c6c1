// dq_compute.h: kernels of users, arrays that they work on, and their launches, on a GPU or on the host.
#ifndef DQ_COMPUTE_H
#define DQ_COMPUTE_H

#include "core/dq_burst.h"
#include "core/dq_core.h"

typedef struct dq_stream dq_stream;
typedef struct dq_kernel dq_kernel;
typedef struct dq_array dq_array;
typedef struct dq_launcher dq_launcher;

#define DQ_HOST_GPU        (-1) // stands for the host where a GPU's number is asked for
#define DQ_MAX_KERNEL_ARGS 32

// What all of these are: counted by reference, their maker's first one is given back by _free (NULL is fine);
// what uses them holds them. `what` names them in errors: "kernel power". Any thread.

// ---- streams ----------------------------------------------------------------------------------------------

// Kernels of one stream run one behind the other, of different ones at the same time. On the host all run at
// once when they are launched.
int dq_stream_new(const char *what, int32_t gpu, dq_stream **out, dq_diag *diag);
void dq_stream_free(dq_stream *s);
// Waits until nothing is under way in it. GENERIC_FAILURE: its GPU was lost.
int dq_stream_synchronize(dq_stream *s, dq_diag *diag);

// ---- kernels ----------------------------------------------------------------------------------------------

// The kernel of this name (as the PTX has it) of a text of PTX with its terminating zero, which the driver
// compiles.
int dq_kernel_from_ptx(const char *what, int32_t gpu, const char *ptx, const char *name, dq_kernel **out,
                       dq_diag *diag);
// This program under this name is the process around the compiler that makes such a library (compiler.c): its
// arguments are the compiler's folder, the folders and files that the compiler may read (':' between two),
// the compiler and its arguments. The socket, or pipe, is the other end of one of the program's: where that
// closes, the compiler ends.
#define DQ_COMPILER_NAME   "daqiri-run: compiler"
#define DQ_COMPILER_SOCKET 3
// The kernel of a library for the host that runtime/kernel made (host.h says what it has).
int dq_kernel_from_library(const char *what, const char *path, dq_kernel **out, dq_diag *diag);
// The types of its arguments, of one of dq_kernel_from_library: a character each, as host.h says.
const char *dq_kernel_types(const dq_kernel *k);
void dq_kernel_free(dq_kernel *k);

// ---- kernels that NVIDIA's libraries bring ----------------------------------------------------------------

#define DQ_MATH_SHAPE 3

// One of them. gemm: out = a b, matrices of rows x inner, inner x columns and rows x columns numbers, row by
// row. fft: forward transforms of complex numbers (pairs: real, imaginary), one behind the other, not scaled.
typedef struct dq_math {
    const char *name, *library;
    const char *params; // as C would declare them: fp32 in memory that the GPU reaches
    const char *shape;  // what its n_shape numbers are, each 1 to 2^20, a comma between two
    uint32_t n_shape;
} dq_math;

// The one of this number, from 0; NULL: there is none.
const dq_math *dq_math_at(uint32_t number);
// Opens its library, once a process. NOT_SUPPORTED: there is none, and diag says what is missing; `what`
// asks.
int dq_math_open(uint32_t number, const char *what, dq_diag *diag);
// A kernel of it, which runs in the stream (of a GPU): launchers of it are given the same one.
int dq_kernel_from_math(const char *what, uint32_t number, const uint32_t *shape, dq_stream *stream,
                        dq_kernel **out, dq_diag *diag);

// ---- arrays -----------------------------------------------------------------------------------------------

// Bytes, all 0: in the host's memory (kind HOST), there and in reach of the GPU (HOST_PINNED), or in the
// GPU's (DEVICE). gpu DQ_HOST_GPU: all of them are the host's. NO_SPACE_AVAILABLE: the GPU has not so much.
int dq_array_new(const char *what, int32_t kind, int32_t gpu, uint64_t bytes, dq_array **out, dq_diag *diag);
void dq_array_free(dq_array *a);
// Where the CPU has its bytes; NULL: they are in a GPU's memory.
uint8_t *dq_array_cpu(const dq_array *a);
// Copies n bytes from or to byte `at`, within the array. Blocks until they are there. A kernel that runs
// meanwhile may write what is read.
int dq_array_read(dq_array *a, uint64_t at, void *to, uint64_t n, dq_diag *diag);
int dq_array_write(dq_array *a, uint64_t at, const void *from, uint64_t n, dq_diag *diag);

// ---- launches ---------------------------------------------------------------------------------------------

// What an argument of a kernel is.
typedef enum dq_arg_kind {
    DQ_ARG_NUMBER,   // the lowest bytes of value, as many as the parameter has
    DQ_ARG_ARRAY,    // a pointer to the array
    DQ_ARG_WORDS,    // a pointer to a copy of the words, as they are at the launch
    DQ_ARG_DATA,     // a pointer to the first segment of the burst's first packet: an aggregate's data
    DQ_ARG_PRESENT,  // a pointer to an aggregate's bitmap: bit c % 64 of word c / 64: cell c came
    DQ_ARG_EXTRA,    // a pointer to the number of each slot of an aggregate, 64 bits
    DQ_ARG_BATCH_ID, // an aggregate's number
    DQ_ARG_PACKETS,  // how many packets the burst has
    DQ_ARG_BURST,    // a pointer to a daqiri_burst of the burst (device.h of runtime/kernel)
} dq_arg_kind;

typedef struct dq_kernel_arg {
    int32_t kind; // dq_arg_kind
    uint64_t value;
    dq_array *array;
    const uint64_t *words;
    uint64_t n_words;
    dq_burst *b; // of a launch; in a stage it is the burst that came
} dq_kernel_arg;

typedef struct dq_grid {
    uint32_t grid[3], block[3];
} dq_grid;

// A place for launches of one kernel, 64 at a time, which begin in order. stream NULL: it has one of its own.
int dq_launcher_new(const char *what, dq_kernel *k, const dq_grid *grid, dq_stream *stream, dq_launcher **out,
                    dq_diag *diag);
// What is under way goes on, and ends or not; what it holds is held for as long.
void dq_launcher_free(dq_launcher *l);
// Launches the kernel; until its end it holds arrays and bursts. *out, where it is asked for: an operation
// (dq_op.h) of one part. NOT_READY: 64 are under way. INVALID_PARAMETER names the argument at fault. On the
// host the kernel has run when the call returns: in a process of the launcher's own, which the first launch
// starts and which has the memory of arrays and of the regions of bursts.
int dq_launch(dq_launcher *l, const dq_kernel_arg *args, uint32_t n, dq_op **out, dq_diag *diag);
// On the host: launches of now and later fail within 0.1 s, by the end of that process; stop false: no
// longer. Any thread.
void dq_launcher_stop(dq_launcher *l, bool stop);
// On the host: ends that process, which holds memory of sessions; the next launch starts another.
void dq_launcher_rest(dq_launcher *l);
// Ends launches whose kernels have ended; of a lost GPU all, as failed. *ended: how many; how many go on.
// Looks at memory alone, but for one call of the driver each 100 ms.
uint32_t dq_launcher_look(dq_launcher *l, uint32_t *ended);
// How many launches that go on hold bursts of the session.
uint32_t dq_launcher_holds(dq_launcher *l, const dq_session *s);
// Why a launch failed, the first one; empty: none did.
void dq_launcher_failure(const dq_launcher *l, char *buf, size_t len);

// ---- a stage ----------------------------------------------------------------------------------------------

typedef struct dq_kernel_conf {
    dq_kernel *kernel;
    dq_grid grid;
    dq_stream *stream; // NULL: one of its own
    const dq_kernel_arg *args;
    uint32_t n_args;
    int32_t policy; // dq_policy while as many launches are under way as can be
} dq_kernel_conf;

// A stage that launches the kernel for each burst, in a session that is open, and holds the burst until the
// kernel has ended. Then the burst comes out of *done, a receive queue of the stage's own, in order; where
// nobody reads that, it ends there.
int dq_stage_kernel(dq_session *s, const char *name, const dq_kernel_conf *conf, dq_stage **out,
                    dq_queue **done, dq_diag *diag);
// What the stage's queue hands out lies where the source's packets lie, and is what they are. Before it has a
// source.
void dq_stage_kernel_like(dq_queue *done, const dq_queue *source);

#endif
