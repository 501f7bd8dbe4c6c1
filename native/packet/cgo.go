// Package packet looks into frames and changes them: headers, fields, checksums, rules, flow tables, tunnels.
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
var _ embed.FS // an edit of a header rebuilds those that import this folder
