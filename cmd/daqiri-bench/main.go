// Command daqiri-bench measures daqiri-run beside peers; `daqiri-run bench` starts it.
package main

import (
	"os"

	"github.com/daqiri/daqiri-run/cmd/daqiri-bench/internal/command"
	"github.com/daqiri/daqiri-run/host/state"
)

func main() {
	os.Exit(command.Main(state.FromOS()))
}
