// Package cuda provides the engine's GPU support: the driver, GPU memory, and lists of moves executed by GPUs.
package cuda

/*
#cgo CFLAGS: -std=c11 -O3 -D_GNU_SOURCE -Wall -Wextra -I${SRCDIR}/..
*/
import "C"

import (
	"embed"

	_ "github.com/daqiri/daqiri-run/native/core"
	_ "github.com/daqiri/daqiri-run/native/kernels"
)

//go:embed *.h
var _ embed.FS // an edit of a header rebuilds the packages that import this folder
