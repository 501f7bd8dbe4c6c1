package cli

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// newConfig returns the command "config".
func newConfig(g *state.Global) *cobra.Command {
	config := &cobra.Command{
		Use:   "config",
		Short: "make configurations, or write their JSON Schema: config generate, render, schema",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Long: `config generate makes configurations from options, and config render replaces values of a file. config schema writes what keys and values a configuration has, for editors. 'daqiri-run help config' lists them, and
'daqiri-run help KEY' explains one.`,
	}
	config.AddCommand(&cobra.Command{
		Use:   "schema",
		Short: "print the JSON Schema of configurations",
		Long: `schema prints a JSON Schema (draft 2020-12) of configuration files. Editors complete keys with it, show what they do
and mark what is wrong:

  daqiri-run config schema > daqiri.schema.json

and in the first line of a configuration, for the YAML language server:

  # yaml-language-server: $schema=daqiri.schema.json

What spans several keys 'daqiri-run check' alone finds.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			enc := json.NewEncoder(g.Stdout)
			enc.SetIndent("", "  ")
			enc.SetEscapeHTML(false)
			return exit.Fail(exit.Storage, enc.Encode(schema.JSON()))
		},
	})
	config.AddCommand(newGenerate(g), newRender(g))
	return config
}
