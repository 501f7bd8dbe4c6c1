// Package engine lists all engines and holds those that consist of a single file.
package engine

/*
#cgo CFLAGS: -std=c11 -O3 -D_GNU_SOURCE -Wall -Wextra -I${SRCDIR}/..
*/
import "C"

import (
	_ "github.com/daqiri/daqiri-run/native/core"
	_ "github.com/daqiri/daqiri-run/native/cuda"
	_ "github.com/daqiri/daqiri-run/native/kernels"
	_ "github.com/daqiri/daqiri-run/native/neighbour"
	_ "github.com/daqiri/daqiri-run/native/packet"
	_ "github.com/daqiri/daqiri-run/native/pipeline"
	_ "github.com/daqiri/daqiri-run/native/program"
)
