// Package xdp is the xdp engine: AF_XDP sockets and the eBPF program that redirects frames to them.
package xdp

/*
#cgo CFLAGS: -std=c11 -O3 -D_GNU_SOURCE -Wall -Wextra -I${SRCDIR}/../..
*/
import "C"

import (
	"embed"

	_ "github.com/daqiri/daqiri-run/native/core"
	_ "github.com/daqiri/daqiri-run/native/cuda"
	_ "github.com/daqiri/daqiri-run/native/engine/ethernet"
	_ "github.com/daqiri/daqiri-run/native/kernels"
	_ "github.com/daqiri/daqiri-run/native/neighbour"
	_ "github.com/daqiri/daqiri-run/native/packet"
	_ "github.com/daqiri/daqiri-run/native/pipeline"
	_ "github.com/daqiri/daqiri-run/native/pipeline/steering"
	_ "github.com/daqiri/daqiri-run/native/program"
)

//go:embed *.h
var _ embed.FS // an edit of a header rebuilds those that import this folder
