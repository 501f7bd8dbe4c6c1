// Package doca holds the headers of kernels with the names of DOCA GPUNetIO's device functions, over the rings of native/gpunetio/device.
package doca

import (
	"embed"
	"io/fs"
)

//go:embed *.h *.cuh
var files embed.FS

// AddHeaders adds the headers by their include names ("doca_gpu.h", "doca_gpunetio_dev_eth_rxq.cuh"), and those that a sample's host code needs.
func AddHeaders(headers map[string]string) {
	names, err := fs.Glob(files, "*")
	if err != nil {
		panic(err) // the pattern is valid
	}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			panic(err) // embedded in the program
		}
		headers[name] = string(text)
	}
	for _, name := range stubs {
		headers[name] = "#include \"doca_host.h\"\n"
	}
	for name, text := range standard {
		headers[name] = text
	}
}

// stubs are include names for which a source gets doca_host.h: headers for the host, whose types samples name.
var stubs = []string{
	"cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "infiniband/verbs.h", "infiniband/mlx5dv.h",
	"doca_argp.h", "doca_buf_array.h", "doca_ctx.h", "doca_dev.h", "doca_dma.h", "doca_dpdk.h", "doca_eth_rxq.h", "doca_eth_rxq_gpu_data_path.h", "doca_eth_txq.h",
	"doca_eth_txq_gpu_data_path.h", "doca_flow.h", "doca_gpunetio.h", "doca_gpunetio_high_level.h", "doca_gpunetio_host.h", "doca_gpunetio_verbs_dev.h", "doca_mmap.h",
	"doca_pe.h", "doca_rdma.h", "doca_rdma_bridge.h", "doca_uar.h", "doca_umem.h", "doca_verbs.h", "doca_verbs_bridge.h", "doca_version.h",
	"common.h", "utils.h", "doca_internal.hpp",
}

// standard are headers of the host that a source gets without what a kernel cannot use.
var standard = map[string]string{"iostream": "", "signal.h": "", "string": "namespace std { struct string { void *words[4]; }; }\n"}

// System are C headers that NVRTC does not have, and of which kernels need nothing.
var System = []string{
	"arpa/inet.h", "assert.h", "errno.h", "fcntl.h", "getopt.h", "inttypes.h", "limits.h", "netinet/in.h", "signal.h", "stdbool.h", "stdio.h", "stdlib.h", "string.h",
	"sys/socket.h", "sys/time.h", "sys/types.h", "time.h", "unistd.h",
}
