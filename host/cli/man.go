package cli

import (
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/host/exit"
)

// newMan returns the hidden command with which `make install` writes the manual pages: daqiri-run(1), and one per command.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "write the manual pages into a folder",
		Hidden: true,
		Args:   needs("a folder for the pages"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			root.DisableAutoGenTag = true // reproducible output
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return exit.Fail(exit.Storage, err)
			}
			return exit.Fail(exit.Storage, doc.GenManTree(root, &doc.GenManHeader{Title: "DAQIRI-RUN", Section: "1", Date: &time.Time{},
				Source: "daqiri-run " + bindings.Version, Manual: "daqiri-run"}, args[0]))
		},
	}
}
