// Package gpunetio has the tests of kernels that send and receive packets themselves.
package gpunetio

import (
	"os"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Tests{M: m}.Run()) }
