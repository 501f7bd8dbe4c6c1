// fake_math.c: what stands in for cuBLAS and cuFFT (DAQIRI_CUBLAS, DAQIRI_CUFFT): sums as their definitions
// say them, in double precision, as launches of a kernel in the stand-in's streams.
#include "fake.h"

#include <math.h>
#include <stdlib.h>

#define STATUS_INVALID 7
#define C2C            0x29
#define MAX_PLANS      64

// What is launched, as a user's kernel is.
typedef struct launch {
    int a, b, c; // gemm: m, n, k; fft: points, batch, direction
    float alpha, beta;
    int lda, ldb, ldc;
} launch;

static const float *floats(void *const *args, int k) { return *(const float *const *)args[k]; }

static int put(cu_stream stream, const char *(*run)(void *const *, const uint32_t *, const uint32_t *),
               const launch *l, const void *x, const void *y, const void *z) {
    dqi_host_kernel *k = calloc(1, sizeof *k); // it stays: nothing reports when it has run
    launch *own = malloc(sizeof *own);
    *own = *l;
    *k = (dqi_host_kernel){.types = "", .run = run};
    job j = {.user = {.kernel = k,
                      .values = {(uintptr_t)x, (uintptr_t)y, (uintptr_t)z, (uintptr_t)own},
                      .grid = {1, 1, 1},
                      .block = {1, 1, 1}}};
    return fake_put(stream, j) == CU_SUCCESS ? 0 : 13; // CUBLAS_STATUS_EXECUTION_FAILED, say
}

static const launch *own_of(void *const *args) { return *(const launch *const *)args[3]; }

// ---- cuBLAS -----------------------------------------------------------------------------------------------

typedef struct handle {
    cu_stream stream;
} handle;

int cublasCreate_v2(handle **out) {
    *out = calloc(1, sizeof **out);
    return 0;
}

int cublasDestroy_v2(handle *h) {
    free(h);
    return 0;
}

int cublasSetStream_v2(handle *h, cu_stream stream) {
    h->stream = stream;
    return 0;
}

// By columns, as BLAS has it: C = alpha A B + beta C.
static const char *gemm(void *const *args, const uint32_t *grid, const uint32_t *block) {
    (void)grid, (void)block;
    const launch *l = own_of(args);
    const float *a = floats(args, 0), *b = floats(args, 1);
    float *c = (float *)(uintptr_t)floats(args, 2);
    double *sums = malloc((size_t)l->a * sizeof *sums);
    for (int j = 0; j < l->b; j++) {
        for (int i = 0; i < l->a; i++)
            sums[i] = 0;
        for (int p = 0; p < l->c; p++)
            for (int i = 0; i < l->a; i++)
                sums[i] += (double)a[i + (size_t)p * l->lda] * (double)b[p + (size_t)j * l->ldb];
        for (int i = 0; i < l->a; i++) {
            float *to = &c[i + (size_t)j * l->ldc];
            *to = (float)(l->alpha * sums[i] + (l->beta == 0 ? 0 : (double)l->beta * (double)*to));
        }
    }
    free(sums);
    return NULL;
}

int cublasSgemm_v2(handle *h, int transpose_a, int transpose_b, int m, int n, int k, const float *alpha,
                   const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc) {
    if (transpose_a || transpose_b || m < 0 || n < 0 || k < 0 || lda < m || ldb < k || ldc < m)
        return STATUS_INVALID;
    launch l = {m, n, k, *alpha, *beta, lda, ldb, ldc};
    return put(h->stream, gemm, &l, a, b, c);
}

// ---- cuFFT ------------------------------------------------------------------------------------------------

static struct {
    int points, batch;
    cu_stream stream;
} plans[MAX_PLANS];
static _Atomic int n_plans;

int cufftPlan1d(int *plan, int points, int type, int batch) {
    if (type != C2C || points < 1 || batch < 1) return STATUS_INVALID;
    *plan = atomic_fetch_add(&n_plans, 1) % MAX_PLANS;
    plans[*plan].points = points;
    plans[*plan].batch = batch;
    return 0;
}

int cufftDestroy(int plan) {
    plans[plan].points = 0;
    return 0;
}

int cufftSetStream(int plan, cu_stream stream) {
    plans[plan].stream = stream;
    return 0;
}

// One transform, of which every n-th number counts.
static void fft(double *out, const double *in, int n, int step, double sign) {
    if (n % 2 != 0) {
        for (int k = 0; k < n; k++) {
            double re = 0, im = 0;
            for (int i = 0; i < n; i++) {
                double at = sign * 2 * M_PI * ((double)i * k / n), c = cos(at), s = sin(at);
                const double *x = in + 2L * i * step;
                re += x[0] * c - x[1] * s;
                im += x[0] * s + x[1] * c;
            }
            out[2 * k] = re;
            out[2 * k + 1] = im;
        }
        return;
    }
    double *half = malloc(2 * sizeof *half * (size_t)n), *even = half, *odd = half + n;
    fft(even, in, n / 2, 2 * step, sign);
    fft(odd, in + 2L * step, n / 2, 2 * step, sign);
    for (int k = 0; k < n; k++) {
        int h = k % (n / 2);
        double at = sign * 2 * M_PI * k / n, c = cos(at), s = sin(at);
        out[2 * k] = even[2 * h] + odd[2 * h] * c - odd[2 * h + 1] * s;
        out[2 * k + 1] = even[2 * h + 1] + odd[2 * h] * s + odd[2 * h + 1] * c;
    }
    free(half);
}

static const char *transforms(void *const *args, const uint32_t *grid, const uint32_t *block) {
    (void)grid, (void)block;
    const launch *l = own_of(args);
    size_t n = 2 * (size_t)l->a;
    double *in = malloc(2 * n * sizeof *in), *out = in + n;
    for (int t = 0; t < l->b; t++) {
        const float *from = floats(args, 0) + n * (size_t)t;
        float *to = (float *)(uintptr_t)floats(args, 1) + n * (size_t)t;
        for (size_t i = 0; i < n; i++)
            in[i] = (double)from[i];
        fft(out, in, l->a, 1, l->c);
        for (size_t i = 0; i < n; i++)
            to[i] = (float)out[i];
    }
    free(in);
    return NULL;
}

int cufftExecC2C(int plan, void *in, void *out, int direction) {
    if (plans[plan].points == 0 || (direction != 1 && direction != -1)) return STATUS_INVALID;
    launch l = {.a = plans[plan].points, .b = plans[plan].batch, .c = direction};
    return put(plans[plan].stream, transforms, &l, in, out, NULL);
}
