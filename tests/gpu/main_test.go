// Package gpu_test has the tests of whole programs that use a GPU, on libraries that stand in for one.
package gpu_test

import (
	"os"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Tests{M: m}.Run()) }
