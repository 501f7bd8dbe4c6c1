// fake_error.c: statuses in words.
#include "fake.h"

static const struct {
    int err;
    const char *name, *text;
} errors[] = {
    {CU_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CU_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {ILLEGAL, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {BAD_LAUNCH, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CU_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {BAD_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {INVALID, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
};

static int words_of(int err) {
    int k = 0;
    while (errors[k].err != err && errors[k].err != INVALID)
        k++;
    return k;
}

int cuGetErrorName(int err, const char **name) {
    *name = errors[words_of(err)].name;
    return CU_SUCCESS;
}

int cuGetErrorString(int err, const char **text) {
    *text = errors[words_of(err)].text;
    return CU_SUCCESS;
}
