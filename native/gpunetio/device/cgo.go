// Package device defines the rings between kernels and the proxy, which connects them to engines.
package device

/*
#cgo CFLAGS: -std=c11 -O3 -D_GNU_SOURCE -Wall -Wextra -I${SRCDIR}/../..
*/
import "C"

import (
	"embed"

	_ "github.com/daqiri/daqiri-run/native/core"
)

// Headers that kernel sources include, by name.
//
//go:embed *.h
var Headers embed.FS
