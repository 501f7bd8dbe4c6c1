// Package kernel makes users' kernels out of their source: CUDA source by NVRTC for a GPU, by the C++ or C compiler for the
// host, PTX as it is. What was made is kept on disk.
//
// It may import the standard library and native. Kernels, arrays, streams and launchers are safe for concurrent use; their
// native part goes when nobody refers to them any more.
package kernel
