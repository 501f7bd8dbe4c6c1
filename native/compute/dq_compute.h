// dq_compute.h: user kernels, arrays and launches, on a GPU or on the host.
#ifndef DQ_COMPUTE_H
#define DQ_COMPUTE_H

#include "core/dq_burst.h"
#include "core/dq_core.h"

typedef struct dq_stream dq_stream;
typedef struct dq_kernel dq_kernel;
typedef struct dq_array dq_array;
typedef struct dq_launcher dq_launcher;

#define DQ_HOST_GPU        (-1) // the host, in place of a GPU's number
#define DQ_MAX_KERNEL_ARGS 32

// All of these are reference counted: the creator's reference is released by _free (NULL is allowed), users
// hold their own. `what` is their name in errors: "kernel power". Any thread.

// ---- streams ----------------------------------------------------------------------------------------------

// Kernels of one stream run in order, those of different streams concurrently. On the host a launch runs
// synchronously.
int dq_stream_new(const char *what, int32_t gpu, dq_stream **out, dq_diag *diag);
void dq_stream_free(dq_stream *s);
// Waits for all work in the stream. GENERIC_FAILURE: its GPU was lost.
int dq_stream_synchronize(dq_stream *s, dq_diag *diag);

// ---- kernels ----------------------------------------------------------------------------------------------

// Loads the kernel of this name from zero-terminated PTX text, compiled by the driver.
int dq_kernel_from_ptx(const char *what, int32_t gpu, const char *ptx, const char *name, dq_kernel **out,
                       dq_diag *diag);
// Under this name, this program is the supervisor of the compiler that builds such a library (compiler.c);
// its arguments are the compiler's folder, the folders and files it may read (separated by ':'), the compiler
// and its arguments. The socket, or pipe, is connected to the program: when the other end is closed, the
// compiler is killed.
#define DQ_COMPILER_NAME   "daqiri-run: compiler"
#define DQ_COMPILER_SOCKET 3
// Loads the kernel of a library for the host built by runtime/kernel (interface: host.h).
int dq_kernel_from_library(const char *what, const char *path, dq_kernel **out, dq_diag *diag);
// Returns the argument types of a kernel of dq_kernel_from_library, one character each as defined in host.h.
const char *dq_kernel_types(const dq_kernel *k);
void dq_kernel_free(dq_kernel *k);

// ---- library kernels --------------------------------------------------------------------------------------

#define DQ_MATH_SHAPE 3

// A kernel of NVIDIA's libraries. gemm: out = a b, row-major matrices of rows x inner, inner x columns and
// rows x columns numbers. fft: consecutive forward transforms of complex numbers (pairs: real, imaginary),
// not scaled.
typedef struct dq_math {
    const char *name, *library;
    const char *params; // C declaration: fp32 in memory accessible to the GPU
    const char *shape;  // names of its n_shape numbers, each 1 to 2^20, comma-separated
    uint32_t n_shape;
} dq_math;

// Returns the kernel with this number, from 0; NULL: past the last.
const dq_math *dq_math_at(uint32_t number);
// Opens its library, once per process. NOT_SUPPORTED: missing, with the reason in diag; `what`: name for
// errors.
int dq_math_open(uint32_t number, const char *what, dq_diag *diag);
// Creates one of them, bound to the (GPU) stream: its launchers must use the same one.
int dq_kernel_from_math(const char *what, uint32_t number, const uint32_t *shape, dq_stream *stream,
                        dq_kernel **out, dq_diag *diag);

// ---- arrays -----------------------------------------------------------------------------------------------

// Allocates a zeroed array: in the host's memory (kind HOST), pinned and accessible to the GPU (HOST_PINNED),
// or in the GPU's memory (DEVICE). gpu DQ_HOST_GPU: always in the host's. NO_SPACE_AVAILABLE: out of GPU
// memory.
int dq_array_new(const char *what, int32_t kind, int32_t gpu, uint64_t bytes, dq_array **out, dq_diag *diag);
void dq_array_free(dq_array *a);
// Copy n bytes from or to byte `at`, within the array; block until done. A running kernel may write
// concurrently.
int dq_array_read(dq_array *a, uint64_t at, void *to, uint64_t n, dq_diag *diag);
int dq_array_write(dq_array *a, uint64_t at, const void *from, uint64_t n, dq_diag *diag);

// ---- launches ---------------------------------------------------------------------------------------------

// Kind of a kernel argument.
typedef enum dq_arg_kind {
    DQ_ARG_NUMBER,   // the parameter's size of low bytes of value
    DQ_ARG_ARRAY,    // pointer to the array
    DQ_ARG_WORDS,    // pointer to a copy of the words, made at the launch
    DQ_ARG_DATA,     // pointer to the first segment of the burst's first packet: an aggregate's data
    DQ_ARG_PRESENT,  // pointer to an aggregate's bitmap: bit c % 64 of word c / 64: cell c is present
    DQ_ARG_EXTRA,    // pointer to the 64-bit number of each slot of an aggregate
    DQ_ARG_BATCH_ID, // number of an aggregate
    DQ_ARG_PACKETS,  // number of packets in the burst
    DQ_ARG_BURST,    // pointer to a daqiri_burst of the burst (device.h of runtime/kernel)
} dq_arg_kind;

typedef struct dq_kernel_arg {
    int32_t kind; // dq_arg_kind
    uint64_t value;
    uint32_t row; // number of a persistent kernel: 1 + the region to which value is an address; 0: none
    dq_array *array;
    const uint64_t *words;
    uint64_t n_words;
    dq_burst *b; // for launches; in a stage, NULL for the input burst
} dq_kernel_arg;

typedef struct dq_grid {
    uint32_t grid[3], block[3];
} dq_grid;

// Creates a launcher for a kernel, with up to 64 pending launches, executed in order. stream NULL: its own
// stream.
int dq_launcher_new(const char *what, dq_kernel *k, const dq_grid *grid, dq_stream *stream, dq_launcher **out,
                    dq_diag *diag);
// Frees the launcher; with pending launches, its memory and what they reference are leaked.
void dq_launcher_free(dq_launcher *l);
// Launches the kernel, with references to arrays and bursts until it ends. *out, if out is not NULL: an
// operation (dq_op.h) of one part. NOT_READY: 64 launches are pending. INVALID_PARAMETER names the invalid
// argument. On the host the kernel has ended when the call returns; it runs in a process of the launcher,
// started by the first launch, which maps the memory of arrays and of the bursts' regions.
int dq_launch(dq_launcher *l, const dq_kernel_arg *args, uint32_t n, dq_op **out, dq_diag *diag);
// Host only: makes current and later launches fail within 0.1 s, by killing that process; stop false: ends
// this. Any thread.
void dq_launcher_stop(dq_launcher *l, bool stop);
// Host only: ends that process, which maps memory of sessions; the next launch starts another.
void dq_launcher_rest(dq_launcher *l);
// Completes launches whose kernels have ended; for a lost GPU all, as failed. *ended: their number; returns
// the number of pending ones. Reads memory only, except for one driver call every 100 ms.
uint32_t dq_launcher_look(dq_launcher *l, uint32_t *ended);
// Returns the number of pending launches with bursts of the session.
uint32_t dq_launcher_holds(dq_launcher *l, const dq_session *s);
// Writes the reason of the first failed launch; empty: none.
void dq_launcher_failure(const dq_launcher *l, char *buf, size_t len);

// ---- stage ------------------------------------------------------------------------------------------------

typedef struct dq_kernel_conf {
    dq_kernel *kernel;
    dq_grid grid;
    dq_stream *stream; // NULL: its own
    const dq_kernel_arg *args;
    uint32_t n_args;
    int32_t policy; // dq_policy while the maximum number of launches is pending
} dq_kernel_conf;

// Creates a stage that launches the kernel for each burst and holds a reference until the kernel has ended;
// the session is open. Bursts are delivered in order through *done, a receive queue of the stage; without a
// consumer they end there.
int dq_stage_kernel(dq_session *s, const char *name, const dq_kernel_conf *conf, dq_stage **out,
                    dq_queue **done, dq_diag *diag);
// Sets the regions and packet type of the stage's queue to those of its source. Before it has a source.
void dq_stage_kernel_like(dq_queue *done, const dq_queue *source);

#endif
