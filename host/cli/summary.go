package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/host/summary"
	"github.com/daqiri/daqiri-run/runtime/textfile"
)

// newSummary returns the command "summary", which prints a file written by --summary-json.
func newSummary(g *state.Global) *cobra.Command {
	var full bool
	cmd := &cobra.Command{
		Use:   "summary A.json [B.json]",
		Short: "show the summary of an earlier run, or compare two",
		Long: `summary prints the summary that a run wrote with --summary-json. With two files it prints them beside each other, line by line; the exit
code is 8 where B lost more packets than A, or did not hold a threshold that A held.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 {
				return exit.Fail(exit.Usage, fmt.Errorf("one file, or two to compare, not %d", len(args)))
			}
			return needs("a file that --summary-json wrote")(cmd, args)
		},
		ValidArgsFunction: filesNamed(".json"),
		RunE: func(_ *cobra.Command, args []string) error {
			var reports []*summary.Report
			for _, file := range args {
				r, err := readReport(file)
				if err != nil {
					return exit.Fail(exit.Usage, err)
				}
				reports = append(reports, r)
			}
			st := summary.Style{Full: full, Color: g.ColorStdout()}
			text, worse := "", false
			if len(reports) == 1 {
				text = reports[0].Head() + reports[0].Text(st)
			} else {
				text, worse = summary.Compare(reports[0], reports[1], st)
			}
			if _, err := io.WriteString(g.Stdout, text); err != nil || !worse {
				return exit.Fail(exit.Storage, err)
			}
			return exit.Ended(exit.Findings)
		},
	}
	cmd.Flags().BoolVar(&full, "full", false, "of one run: with all counters and notes")
	return cmd
}

func readReport(file string) (*summary.Report, error) {
	data, err := textfile.Read(file)
	if err != nil {
		return nil, err
	}
	r, err := summary.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s is not a summary of a run: %w", file, err)
	}
	return r, nil
}
