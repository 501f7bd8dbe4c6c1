// nvrtc.h: the calls used of NVRTC, NVIDIA's CUDA source compiler, opened at run time.
//
// Names, types and numbers are those of the NVRTC documentation (version 12); all exist since 11.2. A call
// returns a status, 0 for success.
#ifndef DQI_CUDA_NVRTC_H
#define DQI_CUDA_NVRTC_H

#include <stddef.h>

typedef int nvrtc_result;
typedef struct nvrtc_program_s *nvrtc_program;

enum { NVRTC_SUCCESS = 0, NVRTC_ERROR_COMPILATION = 6 };

// X(return type, member, symbol, parameters).
#define DQI_NVRTC_CALLS(X)                                                                                   \
    X(nvrtc_result, version, "nvrtcVersion", (int *major, int *minor))                                       \
    X(const char *, error_string, "nvrtcGetErrorString", (nvrtc_result err))                                 \
    X(nvrtc_result, n_archs, "nvrtcGetNumSupportedArchs", (int *n))                                          \
    X(nvrtc_result, archs, "nvrtcGetSupportedArchs", (int *archs))                                           \
    X(nvrtc_result, create, "nvrtcCreateProgram",                                                            \
      (nvrtc_program * out, const char *text, const char *name, int n_headers, const char *const *headers,   \
       const char *const *names))                                                                            \
    X(nvrtc_result, destroy, "nvrtcDestroyProgram", (nvrtc_program * p))                                     \
    X(nvrtc_result, add_name, "nvrtcAddNameExpression", (nvrtc_program p, const char *name))                 \
    X(nvrtc_result, compile, "nvrtcCompileProgram", (nvrtc_program p, int n, const char *const *options))    \
    X(nvrtc_result, log_bytes, "nvrtcGetProgramLogSize", (nvrtc_program p, size_t * n))                      \
    X(nvrtc_result, log, "nvrtcGetProgramLog", (nvrtc_program p, char *log))                                 \
    X(nvrtc_result, lowered_name, "nvrtcGetLoweredName",                                                     \
      (nvrtc_program p, const char *name, const char **lowered))                                             \
    X(nvrtc_result, ptx_bytes, "nvrtcGetPTXSize", (nvrtc_program p, size_t * n))                             \
    X(nvrtc_result, ptx, "nvrtcGetPTX", (nvrtc_program p, char *ptx))

#endif
