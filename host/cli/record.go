package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/state"
)

// recordFlags are the flags of record that are passed as arguments to scripts/files/record.lua.
type recordFlags struct {
	write, seconds, size, rotate string
	longest                      uint64
	both                         bool
}

// newRecord returns the command "record", which runs scripts/files/record.lua.
func newRecord(g *state.Global) *cobra.Command {
	var f runFlags
	var r recordFlags
	cmd := &cobra.Command{
		Use:   "record SOURCE -w FILE [FILTER]",
		Short: "record an interface, a UDP port, a multicast group or a capture into a pcap or pcapng",
		Long: `record writes what comes from SOURCE into FILE (NAME.pcap or NAME.pcapng) until Ctrl-C, or as long as the flags say.
SOURCE is one of
  eth1                      frames that come to a Linux interface; the kernel gets them, too (needs root, or CAP_NET_RAW)
  0000:3b:00.0              frames of a card that DPDK has
  :7148, udp://HOST:PORT    datagrams that come to a port of this machine, or to a multicast group
  FILE, -                   a capture, or one on standard input
FILE must not be there, or be empty; --overwrite replaces it, --rotate writes NAME_000000 and so on behind those that are there.
FILTER is a condition (daqiri-run help conditions: 'udp_dst == 7148 and len > 1000'), or of frames one in the language of libpcap
('udp port 7148'). A run that lost a packet ends with exit code 5, and the summary shows where it was lost.
It runs the script record.lua of the program: 'daqiri-run new my_record --from record' makes a copy to change.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if r.write == "" && len(args) > 0 {
				return exit.Fail(exit.Usage, fmt.Errorf("name the file to write: -w NAME.pcapng"))
			}
			return needs("what to record: an interface (daqiri-run interfaces), :PORT, udp://HOST:PORT or a capture")(cmd, args)
		},
		ValidArgsFunction: onlyFirst(interfaceNames),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := r.free(f.overwrite); err != nil {
				return err
			}
			f.inputs = args[:1]
			return run(g, &f, shipped("record.lua"), r.words(args), false)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVarP(&r.write, "write", "w", "", "the `FILE` to write: NAME.pcap or NAME.pcapng")
	cmd.Flags().StringVar(&r.seconds, "seconds", "", "end after `N` seconds (or with a unit: 5min is 300s)")
	cmd.Flags().StringVar(&r.size, "size", "", "end when the files have `SIZE`, such as 10GiB; none is larger")
	cmd.Flags().StringVar(&r.rotate, "rotate", "", "begin another file after a `SIZE` (1GiB) or a time (60s)")
	cmd.Flags().Uint64Var(&r.longest, "longest", 0, "`BYTES` of the longest packet; by default what the interface takes, and 9216 for sockets")
	cmd.Flags().BoolVar(&r.both, "both", false, "of a Linux interface, record what this machine sends as well as what it receives")
	f.add(cmd.Flags())
	return cmd
}

// free refuses an existing nonempty file, because the user would read it as the result. Rotated files get unused numbers instead.
func (r *recordFlags) free(overwrite bool) error {
	info, err := os.Stat(r.write)
	if err != nil || overwrite || r.rotate != "" || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil
	}
	return exit.Fail(exit.Usage, fmt.Errorf("-w %s: %w", r.write, errTaken))
}

// words returns the arguments of the script.
func (r *recordFlags) words(args []string) []string {
	words := []string{"--source=" + args[0], "--write=" + r.write}
	for name, value := range map[string]string{"seconds": r.seconds, "size": r.size, "rotate": r.rotate, "filter": strings.Join(args[1:], " ")} {
		if value != "" {
			words = append(words, "--"+name+"="+value)
		}
	}
	if r.both {
		words = append(words, "--both")
	}
	if r.longest > 0 {
		words = append(words, "--longest="+strconv.FormatUint(r.longest, 10))
	}
	return words
}
