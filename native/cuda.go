package native

/*
#include "dq.h"
*/
import "C"

import "strconv"

// GPU describes a GPU as reported by the driver.
type GPU struct {
	Number          int    `json:"number"` // number in configurations
	Name            string `json:"name"`
	Bus             string `json:"bus"`                // PCI address
	Compute         string `json:"compute_capability"` // "9.0"
	Multiprocessors int    `json:"multiprocessors"`
	Bytes           uint64 `json:"bytes"`
	NUMANode        int    `json:"numa_node"` // -1: unknown
	Integrated      bool   `json:"integrated"`
	Exports         bool   `json:"exports"`   // its memory can be exported to another process
	GPUDirect       bool   `json:"gpudirect"` // network devices can access its memory,
	DMABuf          bool   `json:"dma_buf"`   // also by DMA-BUF
	major, minor    int
}

// Capability returns the compute capability as one number: 90 for 9.0.
func (g GPU) Capability() int { return g.major*10 + g.minor }

// GPUs returns the GPUs of this host and the driver's version, 12040 for 12.4; an error names what is missing. It opens the
// driver, which takes a fifth of a second.
func GPUs() (driver int, gpus []GPU, err error) {
	var d C.dq_diag
	var version C.int32_t
	var n C.uint32_t
	if err := result("", C.dq_gpu_count(&version, &n, &d), &d); err != nil {
		return 0, nil, err
	}
	for i := range int(n) {
		var c C.dq_gpu_info
		if err := result("", C.dq_gpu_read(C.int32_t(i), &c, &d), &d); err != nil {
			return 0, nil, err
		}
		gpus = append(gpus, GPU{
			Number: i, Name: text(c.name[:]), Bus: text(c.bus[:]), Compute: strconv.Itoa(int(c.major)) + "." + strconv.Itoa(int(c.minor)),
			Multiprocessors: int(c.multiprocessors), Bytes: uint64(c.bytes), NUMANode: int(c.numa_node),
			Integrated: c.integrated != 0, Exports: c.exports != 0, GPUDirect: c.gpudirect != 0, DMABuf: c.dma_buf != 0,
			major: int(c.major), minor: int(c.minor),
		})
	}
	return int(version), gpus, nil
}
