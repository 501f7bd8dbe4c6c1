// Command daqiri-run runs Lua scripts that drive packet pipelines.
package main

import (
	"os"

	"github.com/daqiri/daqiri-run/host/cli"
	"github.com/daqiri/daqiri-run/host/state"
)

func main() {
	os.Exit(cli.Main(state.FromOS()))
}
