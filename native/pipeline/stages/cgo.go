// Package stages has the plain stages: filter, count, sample, gaps, forward, rewrite and tap.
package stages

/*
#cgo CFLAGS: -std=c11 -O3 -D_GNU_SOURCE -Wall -Wextra -I${SRCDIR}/../..
*/
import "C"

import (
	"embed"

	_ "github.com/daqiri/daqiri-run/native/core"
	_ "github.com/daqiri/daqiri-run/native/cuda"
	_ "github.com/daqiri/daqiri-run/native/kernels"
	_ "github.com/daqiri/daqiri-run/native/neighbour"
	_ "github.com/daqiri/daqiri-run/native/packet"
	_ "github.com/daqiri/daqiri-run/native/pipeline"
	_ "github.com/daqiri/daqiri-run/native/program"
)

//go:embed *.h
var _ embed.FS // editing a header rebuilds every importing package
