package structure

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/tree"
)

var update = flag.Bool("update", false, "write the table of costs into docs/architecture.md")

// costs are things of which the project has many, each with an example that is there and the names that it has in the product.
var costs = []struct {
	what, example string
	names         string // regexp of what only the example's files contain
	readme        string // describes how to add one
}{
	{"key of a queue", "`offloads`", `\bOffloads\b|"offloads"|TxEthSrc|tx_eth_src`, "runtime"},
	{"drop reason", "`other_link`", `DROP_OTHER_LINK|X\(OTHER_LINK`, "native/core"},
	{"histogram of a stage", "`run_time`", `HISTOGRAM_RUN_TIME|X\(RUN_TIME`, "native/core"},
	{"method of a burst", "`b:truncate`", `"truncate"`, "bindings"},
	{"format of a writer's files", "bursts of `write_raw`", `WRITE_RAW_BURSTS|format_raw_bursts|RawBursts`, "native/writer"},
	{"engine with a folder", "`ibverbs`", `dqi_engine_ibverbs|EngineIBVerbs|engine/ibverbs"`, "native/engine"},
	{"type of elements", "`bf16`", `DTYPE_BF16|"bf16"`, "native/reorder"},
	{"action of flows", "`vlan_pop`", `ACT_VLAN_POP|X\(VLAN_POP|"vlan_pop"`, "native/packet"},
	{"kind of memory", "`huge`", `KIND_HUGE|X\(HUGE|KindHuge`, "native/core"},
	{"operation of a kernel's ring", "`gn_copy`", `\bgn_copy\b|GN_COPY|X\(COPY`, "native/gpunetio/device"},
	{"exit code", "`quit`", `\bQuit\b`, "host"},
	{"command", "`interfaces`", `newInterfaces\b`, "host"},
	{"data format", "`vdif`", `name = "vdif"`, "stdlib"},
}

// apart finds what the costs leave out: tests, and what is generated from tables.
var apart = regexp.MustCompile(`_test\.go$|/testdata/|\.(md|golden|ptx|svg)$|^cmd/daqiri-bench/|(^|/)constants\.lua$`)

// product are the folders of the program.
var product = regexp.MustCompile(`^(bindings|cmd|host|native|runtime|stdlib)/`)

// TestCosts: the table in docs/architecture.md lists the files of the product that an example of each kind is in, as they are.
func TestCosts(t *testing.T) {
	const name, begin, end = "docs/architecture.md", "<!-- costs: go test ./tests/structure -run TestCosts -update -->\n", "<!-- end -->\n"
	text := tree.Read(t, name)
	head, rest, ok := strings.Cut(text, begin)
	table, tail, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no table between %q and %q", name, begin, end)
	}
	want := costTable(t)
	switch {
	case table == want:
	case *update:
		if err := os.WriteFile(filepath.Join(tree.Root, name), []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s: the table of costs is out of date (hint: go test ./tests/structure -run TestCosts -update)\n%s", name, want)
	}
}

// costTable counts.
func costTable(t *testing.T) string {
	text := map[string]string{} // of the product's files
	for _, file := range tree.Files(t) {
		if product.MatchString(file) && !apart.MatchString(file) {
			text[file] = tree.Read(t, file)
		}
	}
	var b strings.Builder
	b.WriteString("| one more | as | files | which | described in |\n|---|---|---|---|---|\n")
	for _, c := range costs {
		names, found := regexp.MustCompile(c.names), []string{}
		for _, file := range slices.Sorted(maps.Keys(text)) {
			if names.MatchString(text[file]) {
				found = append(found, file)
			}
		}
		if len(found) == 0 {
			t.Errorf("%s: no file has %s", c.what, c.names)
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s | [%s](../%s/README.md) |\n", c.what, c.example, len(found), short(found), c.readme, c.readme)
	}
	return b.String()
}

// short lists files folder by folder.
func short(files []string) string {
	var list []string
	dir := ""
	for _, f := range files {
		if d := path.Dir(f); d != dir {
			dir = d
			list = append(list, "`"+f+"`")
		} else {
			list[len(list)-1] += " `" + path.Base(f) + "`"
		}
	}
	return strings.Join(list, ", ")
}
