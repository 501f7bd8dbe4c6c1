// Package recording has the formats of recordings that other programs read.
package recording

/*
#cgo CFLAGS: -std=c11 -O3 -D_GNU_SOURCE -Wall -Wextra -I${SRCDIR}/../..
*/
import "C"

import (
	"embed"

	_ "github.com/daqiri/daqiri-run/native/capture"
	_ "github.com/daqiri/daqiri-run/native/core"
	_ "github.com/daqiri/daqiri-run/native/cuda"
	_ "github.com/daqiri/daqiri-run/native/kernels"
	_ "github.com/daqiri/daqiri-run/native/neighbour"
	_ "github.com/daqiri/daqiri-run/native/packet"
	_ "github.com/daqiri/daqiri-run/native/pipeline"
	_ "github.com/daqiri/daqiri-run/native/program"
	_ "github.com/daqiri/daqiri-run/native/reorder"
	_ "github.com/daqiri/daqiri-run/native/writer"
)

//go:embed *.h
var _ embed.FS // editing a header rebuilds every importing package
