// Package kernels has the shipped GPU kernels and their host-side counterparts.
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
var _ embed.FS // an edit of a header rebuilds the packages that import this folder; kernels.c includes the modules
