// Package packet parses and modifies frames: headers, fields, checksums, rules, flow tables, tunnels.
package packet

/*
#cgo CFLAGS: -std=c11 -O3 -D_GNU_SOURCE -Wall -Wextra -I${SRCDIR}/..
*/
import "C"

import (
	"embed"

	_ "github.com/daqiri/daqiri-run/native/core"
)

//go:embed *.h
var _ embed.FS // an edit of a header rebuilds the packages that import this folder
