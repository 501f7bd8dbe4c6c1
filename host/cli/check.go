package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daqiri/daqiri-run/host/check"
	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/runtime/session/preflight"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/textfile"
	"github.com/daqiri/daqiri-run/stdlib"
)

// validatorInvalid is the exit code of --validator for an invalid file, which the reference defines.
const validatorInvalid exit.Code = 1

// newCheck returns the command "check".
func newCheck(g *state.Global) *cobra.Command {
	var f configFlags
	var engines, validator bool
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "check configurations and scripts without running them",
		Long: `check reads configurations (YAML) and scripts (NAME.lua) and prints every error with its line.

Of a script it finds syntax errors, undefined globals and comparisons of a u64 with a number; methods, fields, options and
arguments that the API has not, on whatever is certain to be one of its objects; conditions, numbers over fields, matches, thresholds,
sizes, rates and times that can't be read, and names of fields; names of interfaces, queues, regions, stages and figures that the
configuration has not, where the script opens a file that is there (here, or beside the script), a text or a table of constants.
A file that returns a format is checked as one. What a script receives or makes only when it runs is not checked. check warns of
globals that are never set where the script only looks whether they are nil.
For a configuration it also reports what this build of the program can't open, which is not an error of the file.
What depends on the machine (a core, a device, a free port) shows when the session opens.`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case !engines:
				return needs("a configuration or a script to check")(cmd, args)
			case len(args) > 0 || cmd.Flags().NFlag() > 1:
				return exit.Fail(exit.Usage, fmt.Errorf("--list-engines stands alone: no file and no other flag are expected"))
			}
			return nil
		},
		ValidArgsFunction: filesNamed(".yaml", ".yml", ".lua"),
		RunE: func(_ *cobra.Command, args []string) error {
			if engines {
				_, err := fmt.Fprintln(g.Stdout, strings.Join(preflight.Engines(), " "))
				return exit.Fail(exit.Storage, err)
			}
			opts, err := f.options()
			if err != nil {
				return err
			}
			if validator {
				return validateFiles(g, opts, args)
			}
			return checkFiles(g, opts, args)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&engines, "list-engines", false, "print the engines of this build in one line, and check nothing")
	cmd.Flags().BoolVar(&validator, "validator", false, "check configurations as DAQIRI's daqiri_config_validate does: prints 'FILE: valid' or, on stderr,\n"+
		"'FILE: invalid', and ends with 0 (all are valid), 1 (a file is invalid) or 2 (no file)")
	return cmd
}

// validateFiles checks configurations with the output and the exit codes of the reference's validator.
func validateFiles(g *state.Global, opts spec.Options, files []string) error {
	code := exit.OK
	for _, file := range files {
		cfg, warnings, err := spec.ParseFile(file, opts)
		showWarnings(g, cfg, warnings)
		if err == nil {
			fmt.Fprintf(g.Stdout, "%s: valid\n", file)
			continue
		}
		fmt.Fprintf(g.Stderr, "%s\n%s: invalid\n", state.VisibleLines(err.Error()), file)
		code = validatorInvalid
	}
	return exit.Ended(code)
}

// checkFiles checks all files; the exit code is that of the first kind of error found.
func checkFiles(g *state.Global, opts spec.Options, files []string) error {
	code := exit.OK
	worse := func(found exit.Code) {
		if code == exit.OK {
			code = found
		}
	}
	for _, file := range files {
		if filepath.Ext(file) == ".lua" {
			if !checkScript(g, opts, file) {
				worse(exit.Script)
			}
		} else if !checkConfig(g, opts, file) {
			worse(exit.Config)
		}
	}
	return exit.Ended(code)
}

func checkConfig(g *state.Global, opts spec.Options, file string) bool {
	cfg, warnings, err := spec.ParseFile(file, opts)
	showWarnings(g, cfg, warnings)
	var faults *spec.Errors
	if errors.As(err, &faults) {
		for _, fault := range faults.Issues {
			fmt.Fprintln(g.Stderr, state.VisibleLines(fmt.Sprint(fault)))
		}
		fmt.Fprintf(g.Stderr, "%s: %s\n", file, plural(len(faults.Issues), "fault"))
		return false
	}
	if err != nil {
		fmt.Fprintln(g.Stderr, state.VisibleLines(err.Error()))
		return false
	}
	for _, obstacle := range preflight.Obstacles(cfg) {
		fmt.Fprintf(g.Stderr, "can't be opened here: %s\n", state.VisibleLines(fmt.Sprint(obstacle)))
	}
	queues := 0
	for _, i := range cfg.Interfaces {
		if i.RX != nil {
			queues += len(i.RX.Queues)
		}
		if i.TX != nil {
			queues += len(i.TX.Queues)
		}
	}
	fmt.Fprintf(g.Stdout, "%s: ok: %s, %s, %s\n", file, plural(len(cfg.Interfaces), "interface"), plural(queues, "queue"),
		plural(len(cfg.MemoryRegions), "memory region"))
	return true
}

// showWarnings prints a configuration's warnings. cfg is nil if it has errors.
func showWarnings(g *state.Global, cfg *spec.Config, warnings []spec.Issue) {
	if cfg != nil {
		for _, r := range cfg.Unused() {
			r.Text += "; a script may name it, as in s:reorder"
			warnings = append(warnings, r.Issue)
		}
	}
	for _, w := range warnings {
		fmt.Fprintf(g.Stderr, "warning: %s\n", state.VisibleLines(fmt.Sprint(w)))
	}
}

func checkScript(g *state.Global, opts spec.Options, file string) bool {
	text, err := textfile.Read(file)
	if err != nil {
		fmt.Fprintf(g.Stderr, "script: %s\n", state.VisibleLines(fmt.Sprint(err)))
		return false
	}
	faults := check.Script(file, string(text), check.Options{Spec: opts, Library: stdlib.Files})
	bad := 0
	for _, fault := range faults {
		if fault.Warning {
			fmt.Fprintf(g.Stderr, "warning: %s\n", state.VisibleLines(fmt.Sprint(fault)))
			continue
		}
		fmt.Fprintln(g.Stderr, state.VisibleLines(fmt.Sprint(fault)))
		bad++
	}
	if bad > 0 {
		fmt.Fprintf(g.Stderr, "%s: %s\n", file, plural(bad, "fault"))
		return false
	}
	fmt.Fprintf(g.Stdout, "%s: ok\n", file)
	return true
}

// plural formats a number and its noun.
func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
