// Package witness is about deaths of the process that are not its own choice: a fatal error of Go, a fault in C, SIGKILL.
// A small process beside this one outlives it and says what the ledger was. It may import native.
package witness

import (
	"os"
	"runtime/debug"

	"github.com/daqiri/daqiri-run/native"
)

// Record is what there is to say after such a death.
type Record = native.LastRecord

// Witness keeps the last record. For one goroutine; End is its last call.
type Witness = native.Witness

// Prepare has fatal errors of Go end the process with the exit code for them, 70, and not with 2, whose meaning is another.
func Prepare() {
	debug.SetTraceback("crash") // by SIGABRT, that is
	native.HandleAbort()
}

// Start starts a witness, which writes to stderr.
func Start(stderr *os.File) (*Witness, error) { return native.NewWitness(stderr) }
