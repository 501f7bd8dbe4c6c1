package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daqiri/daqiri-run/host/doctor"
	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/machine"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/runtime/session/preflight"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// doctorFlags are the flags of doctor.
type doctorFlags struct {
	config configFlags
	json   bool
	dirs   []string
}

// newDoctor returns the command "doctor".
func newDoctor(g *state.Global) *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor [CONFIG]",
		Short: "look whether this machine, and a configuration on it, is set up to lose nothing",
		Long: `doctor prints a line for each concern: pass, FAIL or not here, what was found, and of a failure why it matters and the command that
mends it. It changes nothing. What only root may read is 'not here' for others.
With a configuration it checks what that needs: its cores, memory, addresses, MTU and buffers, and opens it for a moment, without
starting it, to tell what hardware does, what software does, and what is copied and why.
The exit code is 8 where a row failed.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: onlyFirst(filesNamed(".yaml", ".yml")),
		RunE:              func(_ *cobra.Command, args []string) error { return runDoctor(g, &f, args) },
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	cmd.Flags().StringArrayVar(&f.dirs, "dir", []string{"."}, "check this `FOLDER` for files (repeatable)")
	f.config.add(cmd.Flags())
	return cmd
}

func runDoctor(g *state.Global, f *doctorFlags, args []string) error {
	o := doctor.Options{Machine: machine.Here(), Dirs: f.dirs, GPUs: preflight.GPUs}
	opts, err := f.config.options()
	if err != nil {
		return err
	}
	if len(args) > 0 {
		var warnings []spec.Issue
		if o.Config, warnings, err = spec.ParseFile(args[0], opts); err != nil {
			return exit.Fail(exit.Config, err)
		}
		showWarnings(g, o.Config, warnings)
	}
	all := doctor.Examine(o)
	if f.json {
		err = writeJSON(g.Stdout, all)
	} else {
		_, err = io.WriteString(g.Stdout, doctorText(all, g.ColorStdout()))
		err = exit.Fail(exit.Storage, err)
	}
	if err == nil && doctor.Failed(all) > 0 {
		return exit.Ended(exit.Findings)
	}
	return err
}

// doctorText formats the findings as text.
func doctorText(all []doctor.Finding, color bool) string {
	paint := func(code, text string) string {
		if !color {
			return text
		}
		return "\x1b[" + code + "m" + text + "\x1b[0m"
	}
	wide, n := 0, map[doctor.State]int{}
	for _, f := range all {
		wide = max(wide, len(f.Row))
		n[f.State]++
	}
	var b strings.Builder
	for _, f := range all {
		mark := map[doctor.State]string{doctor.Pass: paint("32", "pass    "), doctor.Fail: paint("31", "FAIL    "), doctor.NotHere: "not here"}[f.State]
		found := f.Found
		if f.Of != "" {
			found = f.Of + ": " + found
		}
		fmt.Fprintf(&b, "%s  %-*s  %s\n", mark, wide, f.Row, found)
		if f.State == doctor.Fail {
			indent := strings.Repeat(" ", len("not here")+2+wide+2)
			fmt.Fprintf(&b, "%swhy: %s\n%sdo:  %s\n", indent, f.Why, indent, f.Command)
		}
	}
	fmt.Fprintf(&b, "%d pass, %d fail, %d not here\n", n[doctor.Pass], n[doctor.Fail], n[doctor.NotHere])
	return b.String()
}
