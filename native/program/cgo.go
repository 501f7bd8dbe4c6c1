// Package program runs conditions and changes over bursts.
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
var _ embed.FS // an edit of a header rebuilds those that import this folder
