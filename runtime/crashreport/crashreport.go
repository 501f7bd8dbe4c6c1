// Package crashreport reports what the ledger was when the process dies without a choice of its own: by a fatal error of Go, by a
// fault in C, by SIGKILL. A small process beside this one outlives it and prints the report. The package may import native.
package crashreport

import (
	"os"
	"runtime/debug"

	"github.com/daqiri/daqiri-run/native"
)

// Record holds what the crash reporter prints.
type Record = native.LastRecord

// Reporter keeps the latest record. It is for one goroutine; End is its last call.
type Reporter = native.CrashReporter

// Prepare makes fatal errors of Go end the process with exit code 70 instead of 2, which has another meaning here.
func Prepare() {
	debug.SetTraceback("crash") // raises SIGABRT
	native.HandleAbort()
}

// Start starts a crash reporter that prints to stderr.
func Start(stderr *os.File) (*Reporter, error) { return native.NewCrashReporter(stderr) }
