// Package network has the tests of whole programs that send and receive: sockets, raw Ethernet, AF_XDP, DPDK, ibverbs, and replayed captures.
package network

import (
	"os"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Tests{M: m}.Run()) }
