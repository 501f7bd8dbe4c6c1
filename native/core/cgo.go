// Package core is the foundation of all engine layers: errors, clock, atomics, memory and bursts.
package core

/*
#cgo CFLAGS: -std=c11 -O3 -D_GNU_SOURCE -Wall -Wextra -I${SRCDIR}/..
*/
import "C"

import "embed"

//go:embed *.h
var _ embed.FS // an edit of a header rebuilds the packages that import this folder
