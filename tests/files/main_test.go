// Package files has the tests of whole programs that write files and objects: captures, blocks, manifests, S3, and their readers.
package files

import (
	"os"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Tests{M: m}.Run()) }
