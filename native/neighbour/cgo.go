// Package neighbour builds and parses ARP, neighbour discovery, IGMP and MLD messages of interfaces.
package neighbour

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
