package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/runtime/suggest"
	"github.com/daqiri/daqiri-run/runtime/textfile"
	"github.com/daqiri/daqiri-run/stdlib"
)

// newDissector returns the command "dissector".
func newDissector(g *state.Global) *cobra.Command {
	return &cobra.Command{
		Use:   "dissector FORMAT",
		Short: "print a Wireshark dissector for a format of packets",
		Long: `dissector prints Lua with which Wireshark and tshark show packets of a format, as protocol daqiri_NAME:

  daqiri-run dissector chips > chips.lua
  tshark -X lua_script:chips.lua -d udp.port==4015,daqiri_chips -r FILE -V

FORMAT is a format of the library ('daqiri-run help formats' lists them), or a file of Lua that returns the table of one.`,
		Args: needs("a format"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return luaformat.LibraryNames(stdlib.Files), cobra.ShellCompDirectiveDefault
		},
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := findFormat(args[0])
			if err == nil {
				_, err = fmt.Fprint(g.Stdout, f.Dissector())
				return exit.Fail(exit.Storage, err)
			}
			return err
		},
	}
}

// findFormat loads a format of the library or of a file.
func findFormat(name string) (*format.Format, error) {
	if strings.HasSuffix(name, ".lua") {
		source, err := textfile.Read(name)
		if err != nil {
			return nil, exit.Fail(exit.Usage, err)
		}
		f, err := luaformat.Load(name, string(source))
		return f, exit.Fail(exit.Script, err)
	}
	f, err := luaformat.FromLibrary(stdlib.Files, name)
	if err == nil && f == nil {
		hint := ""
		if near := suggest.Nearest(name, luaformat.LibraryNames(stdlib.Files)); near != "" {
			hint = fmt.Sprintf(" (did you mean '%s'?)", near)
		}
		return nil, exit.Fail(exit.Usage, fmt.Errorf("%s: no format of the library%s; one of your own is a file of Lua", name, hint))
	}
	return f, exit.Fail(exit.Internal, err)
}
