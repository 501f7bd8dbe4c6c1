// Package reorder has the tests of whole programs that join packets: data formats, reorder stages, heaps and SPEAD.
package reorder

import (
	"os"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Tests{M: m}.Run()) }
