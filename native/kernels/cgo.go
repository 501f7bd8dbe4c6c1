// Package kernels holds the shipped GPU kernels, and what the host needs to run them.
package kernels

/*
#cgo CFLAGS: -std=c11 -O3 -D_GNU_SOURCE -Wall -Wextra -I${SRCDIR}/..
*/
import "C"

import (
	"embed"

	_ "github.com/daqiri/daqiri-run/native/core"
)

//go:embed *.h *.ptx
var _ embed.FS // an edit of a header rebuilds those that import this folder; the modules are in kernels.c
