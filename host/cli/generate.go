package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/generate"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// newGenerate returns the command "config generate", with a subcommand for each kind of configuration.
func newGenerate(g *state.Global) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "make the configuration of two ports or endpoints from options",
		Long: `generate makes configurations for a host from options: addresses, cores of queues, sizes. The same options give the same
bytes. What it makes passes 'daqiri-run check'.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, p := range generate.Pairs {
		cmd.AddCommand(newPair(g, p))
	}
	return cmd
}

// newPair returns the subcommand of one kind of configuration.
func newPair(g *state.Global, p *generate.Pair) *cobra.Command {
	var target generateTarget
	var options *generate.Options
	cmd := &cobra.Command{
		Use:   p.Name,
		Short: p.Short,
		Long:  p.Long,
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			files, err := options.Files()
			if err != nil {
				return exit.Fail(exit.Usage, err)
			}
			return target.write(g, files, nil)
		},
	}
	cmd.Flags().SortFlags = false
	options = p.AddFlags(cmd.Flags())
	target.add(cmd.Flags())
	cmd.Flags().StringVar(&target.dir, "output-dir", "", "write "+p.Name+".yaml, or "+p.Name+"-ROLE.yaml, into this `FOLDER`")
	for name, words := range p.Choices() {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

// newRender returns the command "config render".
func newRender(g *state.Global) *cobra.Command {
	var target generateTarget
	var set []string
	cmd := &cobra.Command{
		Use:   "render FILE --set PATH=VALUE",
		Short: "replace values of a configuration, such as the <placeholders> of a template",
		Long: `render prints a configuration in which values are replaced. A path is that of 'run --set', or a JSON pointer from the root of
the file. It must exist, and no <placeholder> may be left, also not beside the configuration. Comments are kept.

  daqiri-run config render pair.yaml --set interfaces.tx_port.address=eth1 --set /bench_tx/0/eth_dst_addr=02:00:00:00:00:02`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Fail(exit.Usage, fmt.Errorf("name one configuration to render, not %d", len(args)))
			}
			return nil
		},
		ValidArgsFunction: filesNamed(".yaml", ".yml"),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := render(args[0], set)
			if err != nil {
				return err
			}
			return target.write(g, []generate.File{{Name: args[0], Text: text}}, args)
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "replace the value at `PATH=VALUE`, such as interfaces.rx_port.rx.queues.0.batch_size=64 or\n"+
		"/daqiri/cfg/interfaces/0/address=eth1 (repeatable)")
	target.add(cmd.Flags())
	return cmd
}

// render returns the text of a configuration with values replaced.
func render(file string, set []string) (string, error) {
	var overrides []spec.Override
	for _, arg := range set {
		o, err := spec.ParseOverride(arg)
		if err != nil {
			return "", exit.Fail(exit.Usage, fmt.Errorf("--set %w", err))
		}
		overrides = append(overrides, o)
	}
	data, err := spec.ReadFile(file)
	if err != nil {
		return "", exit.Fail(exit.Config, err)
	}
	text, err := spec.Render(file, data, overrides)
	if wrong := (*spec.SetError)(nil); errors.As(err, &wrong) {
		return "", exit.Fail(exit.Usage, err)
	}
	return text, exit.Fail(exit.Config, err)
}

// A generateTarget is where generated files are written: to a file, to a folder, or to stdout.
type generateTarget struct {
	file, dir string
	overwrite bool
}

func (t *generateTarget) add(fs *pflag.FlagSet) {
	fs.StringVar(&t.file, "output", "", "write to this `FILE` instead of stdout; a file that exists is not replaced")
	fs.BoolVar(&t.overwrite, "overwrite", false, "replace files that exist")
}

// write writes the files; all of them are claimed before the first is written. inputs are not overwritten.
func (t *generateTarget) write(g *state.Global, files []generate.File, inputs []string) error {
	flag := "--output"
	switch {
	case t.file != "" && t.dir != "":
		return exit.Fail(exit.Usage, fmt.Errorf("--output and --output-dir exclude each other"))
	case t.dir != "":
		flag = "--output-dir"
		if err := os.MkdirAll(t.dir, 0o755); err != nil {
			return exit.Fail(exit.Usage, fmt.Errorf("%s: %w", flag, err))
		}
		for k := range files {
			files[k].Name = filepath.Join(t.dir, files[k].Name)
		}
	case len(files) > 1:
		return exit.Fail(exit.Usage, fmt.Errorf("--output-dir is missing: expected a folder for the %d files of the role", len(files)))
	case t.file != "":
		files[0].Name = t.file
	default:
		_, err := io.WriteString(g.Stdout, files[0].Text)
		return exit.Fail(exit.Storage, err)
	}
	var outputs []output
	for _, f := range files {
		outputs = append(outputs, output{flag, f.Name})
	}
	if err := claimOutputs(t.overwrite, inputs, outputs...); err != nil {
		return err
	}
	for _, f := range files {
		if err := writeOutput(f.Name, []byte(f.Text)); err != nil {
			return exit.Fail(exit.Storage, err)
		}
	}
	return nil
}
