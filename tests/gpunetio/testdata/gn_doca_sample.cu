// gn_doca_sample.cu: a kernel and the function of the host that launches it, with a header of both.
#include "gn_doca_sample.h"

DOCA_LOG_REGISTER(SAMPLE::KERNEL);

__global__ void sample(int *out)
{
    static_assert(sizeof(struct sample_header) == 11 && sizeof(sample_pair) == 9, "packed");
    out[0] = sample_bytes() + SAMPLE_WORDS;
}

extern "C" {
doca_error_t sample_launch(cudaStream_t stream, int *out)
{
    cudaError_t result = cudaGetLastError();
    if (result != cudaSuccess) {
        DOCA_LOG_ERR("[%s:%d] %s", __FILE__, __LINE__, cudaGetErrorString(result));
        return DOCA_ERROR_BAD_STATE;
    }
    sample<<<1, 1, 0, stream>>>(out);
    return DOCA_SUCCESS;
}
} /* extern C */
