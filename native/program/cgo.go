// Package program evaluates conditions on bursts and applies changes to them.
package program

/*
#cgo CFLAGS: -std=c11 -O3 -D_GNU_SOURCE -Wall -Wextra -I${SRCDIR}/..
*/
import "C"

import (
	"embed"

	_ "github.com/daqiri/daqiri-run/native/core"
	_ "github.com/daqiri/daqiri-run/native/packet"
)

//go:embed *.h
var _ embed.FS // an edit of a header rebuilds the packages that import this folder
