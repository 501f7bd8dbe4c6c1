// Package core is what every layer of the engine stands on: errors, clock, atomics, memory and bursts.
package core

/*
#cgo CFLAGS: -std=c11 -O3 -D_GNU_SOURCE -Wall -Wextra -I${SRCDIR}/..
*/
import "C"

import "embed"

//go:embed *.h
var _ embed.FS // an edit of a header rebuilds those that import this folder
