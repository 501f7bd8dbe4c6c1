package native

// The folders of the engine, linked together.
import (
	_ "github.com/daqiri/daqiri-run/native/capture"
	_ "github.com/daqiri/daqiri-run/native/compute"
	_ "github.com/daqiri/daqiri-run/native/core"
	_ "github.com/daqiri/daqiri-run/native/cuda"
	_ "github.com/daqiri/daqiri-run/native/engine"
	_ "github.com/daqiri/daqiri-run/native/engine/dpdk"
	_ "github.com/daqiri/daqiri-run/native/engine/ethernet"
	_ "github.com/daqiri/daqiri-run/native/engine/ibverbs"
	_ "github.com/daqiri/daqiri-run/native/engine/loop"
	_ "github.com/daqiri/daqiri-run/native/engine/rdma"
	_ "github.com/daqiri/daqiri-run/native/engine/replay"
	_ "github.com/daqiri/daqiri-run/native/engine/socket"
	_ "github.com/daqiri/daqiri-run/native/engine/xdp"
	_ "github.com/daqiri/daqiri-run/native/gpunetio/device"
	_ "github.com/daqiri/daqiri-run/native/gpunetio/host"
	_ "github.com/daqiri/daqiri-run/native/kernels"
	_ "github.com/daqiri/daqiri-run/native/neighbour"
	_ "github.com/daqiri/daqiri-run/native/packet"
	_ "github.com/daqiri/daqiri-run/native/pipeline"
	_ "github.com/daqiri/daqiri-run/native/program"
	_ "github.com/daqiri/daqiri-run/native/reorder"
	_ "github.com/daqiri/daqiri-run/native/writer"
)
