// Command soak runs daqiri-run at full rate for minutes, as users run it, and does to it what goes wrong in the
// field: peers die, sockets close, disks fill up and stall, handlers are slow or raise errors, memory runs out. Every
// packet carries a number that its sender gave it; the rig holds what arrived against what was sent and against the
// ledger. It imports nothing of the program: it starts it, reads its summary, and checks it through /proc.
//
// All chance comes from one seed, which a failing run prints.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// options are what the command line sets.
type options struct {
	program, scripts string
	dir              string // for what the programs write
	length           time.Duration
	seed             uint64
	faults           []string // empty: all
	lossy            uint64   // the UDP sender leaves out one packet in so many and counts it as sent; 0: none
	clock            bool     // step the real-time clock, which the whole machine has
	brief            bool     // few of everything: for the tests
	out              io.Writer
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == peerCommand {
		os.Exit(peer(os.Args[2:]))
	}
	o := options{out: os.Stdout}
	var minutes float64
	var faults string
	flag.StringVar(&o.program, "program", "./daqiri-run", "what to test")
	flag.StringVar(&o.scripts, "scripts", "tests/soak", "folder of the rig's scripts")
	flag.Float64Var(&minutes, "minutes", 10, "how long")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of all chance")
	flag.StringVar(&faults, "faults", "", "only these, comma separated: "+strings.Join(faultNames(), " "))
	flag.Uint64Var(&o.lossy, "lossy", 0, "lose one packet in so many without counting it: the run must fail")
	flag.BoolVar(&o.clock, "clock", false, "step the real-time clock, forward or back and then home: as root, on a machine of its own")
	flag.Parse()
	o.length = time.Duration(minutes * float64(time.Minute))
	o.faults = strings.FieldsFunc(faults, func(r rune) bool { return r == ',' || r == ' ' })
	os.Exit(run(o))
}

// run returns the exit code. A folder of the run's own is kept where something is wrong.
func run(o options) int {
	var found int
	var err error
	if o.dir, err = os.MkdirTemp("", "soak-"); err == nil {
		found, err = soak(o)
	}
	switch {
	case err != nil:
		fmt.Fprintf(os.Stderr, "soak: %v\n", err)
		return 2
	case found > 0:
		return 1
	}
	_ = os.RemoveAll(o.dir)
	return 0
}
