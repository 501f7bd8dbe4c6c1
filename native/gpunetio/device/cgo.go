// Package device holds the rings between kernels and the proxy that hands what they say to engines.
package device

/*
#cgo CFLAGS: -std=c11 -O3 -D_GNU_SOURCE -Wall -Wextra -I${SRCDIR}/../..
*/
import "C"

import (
	"embed"

	_ "github.com/daqiri/daqiri-run/native/core"
)

// Headers are those that sources of kernels include, by name.
//
//go:embed *.h
var Headers embed.FS
