package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/daqiri/daqiri-run/host/doctor"
	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/machine"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/runtime/session/preflight"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// newInspect returns the command "inspect".
func newInspect(g *state.Global) *cobra.Command {
	var f configFlags
	cmd := &cobra.Command{
		Use:   "inspect FILE",
		Short: "print the resolved plan of a configuration as JSON",
		Long: `inspect prints a configuration as it would be opened: defaults filled in, an engine chosen for each interface, and
who uses which memory region, the PTP clocks of this host, and what keeps this build of the program from opening it
(obstacles). Where it has memory for GPUs, also what the driver reports about those of this machine, and doctor's rows about them.
It opens no interface.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exit.Fail(exit.Usage, fmt.Errorf("one configuration at a time, not %d", len(args)))
			}
			return needs("a configuration to inspect")(cmd, args)
		},
		ValidArgsFunction: filesNamed(".yaml", ".yml"),
		RunE: func(_ *cobra.Command, args []string) error {
			opts, err := f.options()
			if err != nil {
				return err
			}
			return inspect(g, opts, args[0])
		},
	}
	f.add(cmd.Flags())
	return cmd
}

func inspect(g *state.Global, opts spec.Options, file string) error {
	if filepath.Ext(file) == ".lua" {
		return exit.Fail(exit.Usage, fmt.Errorf("%s: a script chooses its configuration when it runs; inspect that file (YAML), "+
			"or check the script with 'daqiri-run check %s'", file, file))
	}
	cfg, warnings, err := spec.ParseFile(file, opts)
	showWarnings(g, cfg, warnings)
	if err != nil {
		return exit.Fail(exit.Config, err)
	}
	enc := json.NewEncoder(g.Stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	plan := machinePlan{HostPlan: preflight.Plan(cfg)}
	if plan.GPUs != nil {
		plan.Machine = doctor.GPUs(doctor.Options{Machine: machine.Here(), Config: cfg, Dirs: []string{"."}, GPUs: preflight.GPUs})
	}
	return exit.Fail(exit.Storage, enc.Encode(plan))
}

// machinePlan is a plan with, for GPU memory, doctor's findings about the GPUs of this machine.
type machinePlan struct {
	*preflight.HostPlan
	Machine []doctor.Finding `json:"gpu_machine,omitempty"`
}
