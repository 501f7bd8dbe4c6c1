package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/machine"
	"github.com/daqiri/daqiri-run/host/state"
)

// newInterfaces returns the command "interfaces".
func newInterfaces(g *state.Global) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "interfaces",
		Short: "list the network interfaces of this machine, and what each is good for",
		Long: `interfaces prints for each network interface its state, speed, MTU, queues, driver, NUMA node, PTP clock and addresses, and network cards
that a driver for programs has (DPDK). NAME is what record, a configuration's address and 'new --interface' take. No root needed.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			all := machine.Here().Interfaces()
			if asJSON {
				return writeJSON(g.Stdout, all)
			}
			_, err := io.WriteString(g.Stdout, interfacesText(all))
			return exit.Fail(exit.Storage, err)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func interfacesText(all []machine.Interface) string {
	rows := [][]string{{"NAME", "STATE", "SPEED", "MTU", "QUEUES", "DRIVER", "NODE", "PTP", "ADDRESSES"}}
	for _, i := range all {
		rows = append(rows, []string{i.Name, i.State, i.SpeedText(), number(i.MTU), queuesText(i), or(i.Driver), nodeText(i.Node), or(i.PTP),
			strings.Join(append([]string{i.MAC}, i.Addresses...), " ")})
	}
	return columnsOf(rows)
}

func queuesText(i machine.Interface) string {
	if i.RxQueues+i.TxQueues == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", i.RxQueues, i.TxQueues)
}

func nodeText(node int) string {
	if node < 0 {
		return "-"
	}
	return fmt.Sprint(node)
}

func number(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func or(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// columnsOf aligns cells, without trailing space.
func columnsOf(rows [][]string) string {
	var wide []int
	for _, row := range rows {
		for k, cell := range row {
			if k == len(wide) {
				wide = append(wide, 0)
			}
			wide[k] = max(wide[k], len([]rune(cell)))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		line := ""
		for k, cell := range row {
			line += cell + strings.Repeat(" ", wide[k]-len([]rune(cell))+2)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// interfaceNames completes network interfaces and files.
func interfaceNames(_ *cobra.Command, _ []string, word string) (names []string, then cobra.ShellCompDirective) {
	for _, i := range machine.Here().Interfaces() {
		if strings.HasPrefix(i.Name, word) {
			names = append(names, i.Name)
		}
	}
	return names, cobra.ShellCompDirectiveDefault
}
