// Package kernel builds user kernels from source: CUDA source by NVRTC for a GPU or by the C++ or C compiler for the host, and PTX as it is. Compiler
// output is cached on disk.
//
// The package may import the standard library and native. Kernels, arrays, streams and launchers are safe for concurrent use; their native parts are
// freed when they become unreachable.
package kernel
