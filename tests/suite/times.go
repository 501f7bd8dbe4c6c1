package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/tests/tree"
)

// leastShare is the share of the CPU time, in percent, from which a part of the suite has a row of its own.
const leastShare = 2

// printTimes prints what steps and groups of tests took the last time: seconds, CPU seconds and the share of the CPU time of all.
func printTimes(w io.Writer, took map[string]cost) {
	parts := map[string]cost{}
	var all, rest cost
	for name, c := range took {
		if strings.HasPrefix(name, "level ") || strings.HasSuffix(name, " go tests") || name == "step packages" { // the sums of others
			continue
		}
		parts[strings.TrimPrefix(name, tree.Module+"/")] = c
		all.CPU += c.CPU
	}
	share := func(c cost) float64 { return 100 * c.CPU / max(all.CPU, 1) }
	names := slices.SortedFunc(maps.Keys(parts), func(a, b string) int { return int(1000 * (parts[b].CPU - parts[a].CPU)) })
	fmt.Fprintf(w, "| step, or group of tests | seconds | CPU seconds | share |\n|---|---|---|---|\n")
	left := 0
	for _, name := range names {
		c := parts[name]
		if share(c) < leastShare {
			rest.CPU += c.CPU
			rest.Seconds += c.Seconds
			left++
			continue
		}
		fmt.Fprintf(w, "| %s | %.0f | %.0f | %.0f %% |\n", name, c.Seconds, c.CPU, share(c))
	}
	fmt.Fprintf(w, "| %d others | %.0f | %.0f | %.0f %% |\n", left, rest.Seconds, rest.CPU, share(rest))
}
