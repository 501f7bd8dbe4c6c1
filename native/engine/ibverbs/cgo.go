// Package ibverbs is the ibverbs engine: raw Ethernet over verbs.
package ibverbs

/*
#cgo CFLAGS: -std=c11 -O3 -D_GNU_SOURCE -Wall -Wextra -I${SRCDIR}/../..
*/
import "C"

import (
	"embed"

	_ "github.com/daqiri/daqiri-run/native/core"
	_ "github.com/daqiri/daqiri-run/native/cuda"
	_ "github.com/daqiri/daqiri-run/native/engine/ethernet"
	_ "github.com/daqiri/daqiri-run/native/engine/rdma"
	_ "github.com/daqiri/daqiri-run/native/kernels"
	_ "github.com/daqiri/daqiri-run/native/neighbour"
	_ "github.com/daqiri/daqiri-run/native/packet"
	_ "github.com/daqiri/daqiri-run/native/pipeline"
	_ "github.com/daqiri/daqiri-run/native/pipeline/connection"
	_ "github.com/daqiri/daqiri-run/native/pipeline/steering"
	_ "github.com/daqiri/daqiri-run/native/program"
)

//go:embed *.h
var _ embed.FS // an edit of a header rebuilds those that import this folder
