package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/runtime/session/preflight"
)

// newVersion returns the command "version".
func newVersion(g *state.Global) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print version, platform and engines",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(g.Stdout, versionText())
			return exit.Fail(exit.Storage, err)
		},
	}
}

// versionText returns the output of version and --version.
func versionText() string {
	return fmt.Sprintf("daqiri-run %s\n%s %s/%s\nengines: %s\n", fullVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH,
		strings.Join(preflight.Engines(), ", "))
}

// fullVersion returns the version and, if the build recorded it, the commit: "0.1.0 (1a2b3c4d5e6f, modified)".
func fullVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return bindings.Version
	}
	commit, modified := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = ", modified"
		}
	}
	if commit == "" {
		return bindings.Version
	}
	return fmt.Sprintf("%s (%s%s)", bindings.Version, commit, modified)
}
