package suite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/daqiri/daqiri-run/bindings"
)

// TestStdlib runs the selftest of each shipped module, as these use the functions of this package.
func TestStdlib(t *testing.T) {
	files, err := filepath.Glob("../../stdlib/*.lua")
	if err != nil || len(files) == 0 {
		t.Fatal("no modules", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			o := run(t, filepath.Base(file), "local M = (function() "+string(text)+"\nend)() M.selftest()",
				func(rt *bindings.Runtime) { rt.NewState = newStdlibState })
			if o.err != nil {
				t.Error(o.err)
			}
		})
	}
}
