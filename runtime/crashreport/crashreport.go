// Package crashreport prints the last ledger after the process dies unexpectedly: by a fatal error of Go, by a signal in C code, or by SIGKILL. A
// small child process outlives this one and prints the report. The package may import native.
package crashreport

import (
	"os"
	"runtime/debug"

	"github.com/daqiri/daqiri-run/native"
)

// Record holds what the crash reporter prints.
type Record = native.LastRecord

// Reporter passes the latest record to the child process. It must be used by one goroutine; End must be the last call.
type Reporter = native.CrashReporter

// Prepare makes fatal errors of Go end the process with exit code 70 instead of 2, because daqiri-run uses 2 for other errors.
func Prepare() {
	debug.SetTraceback("crash") // raises SIGABRT
	native.HandleAbort()
}

// Start starts a crash reporter process that prints to stderr.
func Start(stderr *os.File) (*Reporter, error) { return native.NewCrashReporter(stderr) }
