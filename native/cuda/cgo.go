// Package cuda is what the engine has of GPUs: the driver, their memory, and lists of moves that they do.
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
var _ embed.FS // an edit of a header rebuilds those that import this folder
