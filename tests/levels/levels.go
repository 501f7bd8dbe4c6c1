// Package levels is the table of what each level of the test suite runs. The command tests/suite runs it, and tests/mutate asks it
// which level sees an error.
//
// It imports the standard library alone.
package levels

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Level is a set of tests with one name.
type Level string

const (
	Test Level = "test" // what `make test` runs: every package, C unit and whole program once
	Deep Level = "deep" // what `make test-deep` adds
)

// A Selection is some tests of some packages, run with the same flags.
type Selection struct {
	Tag      string   // appended to the package's name in reports, where a level has several selections of the package
	Packages []string // folders relative to the root; nil: every package with tests that no row of Apart names
	Flags    []string // of go test
	Env      []string
	Run      string         // pattern of go test; "": all but those of DeepOnly
	Files    *regexp.Regexp // of a package that is split: the files whose tests run; nil: all
	Parallel int            // how many tests of a process run at once; 0: as many as there are processors
	Threads  bool           // only packages that start goroutines
	Slots    int            // how many processes of the others it counts for, since it keeps processors busy; 0: one
	Usual    time.Duration  // how long its longest process takes, until that is measured; 0: not long
	Split    bool           // run the tests of each file in a process of their own, several at a time
}

// Programs are the packages that test whole programs. The tests of each file run in a process of their own.
var Programs = []string{"tests/cli", "tests/files", "tests/gpu", "tests/gpunetio", "tests/harness", "tests/network", "tests/reorder"}

// Apart are packages whose tests have selections of their own.
var Apart = append([]string{"tests/units", "tests/vm"}, Programs...)

// DeepOnly are the tests that `make test` leaves to `make test-deep`, by package.
var DeepOnly = []struct{ Package, Pattern, Why string }{
	{"tests/units", `^TestNative(Variants)?$/^(plain|tsan|msan|arm64)`, "C units of other variants than asan+ubsan"},
	{"tests/units", `^TestManyCases$`, "40,000 random streams of blocks, and of heaps"},
	{"tests/cli", `^TestArm64`, "emulated arm64"},
	{"tests/cli", `^TestRelease$`, "builds packages for other machines"},
	{"tests/gpu", `^TestGPUSuite$`, "builds packages for other machines"},
	{"tests/gpu", `^TestPTX$`, "needs clang"},
	{"tests/gpunetio", `^TestGnDevice$`, "needs clang"},
	{"tests/network", `^Test(DPDKReleases|BPFObject)$`, "needs other releases of DPDK, or clang"},
	{"tests/structure", `^TestEngineLayersRebuild$`, "builds the engine for each header"},
	{"tests/language", `^TestLanguage`, "builds vale"},
	{"runtime/kernel", `^TestNVRTC$`, "needs NVRTC of another release"},
	{"tests/vm", `.`, "virtual machines"},
	{"bindings/suite", `^Test(Members|APIFuzz)$`, "random calls, run with the address sanitizer"},
}

// Alone are the tests of packages with goroutines that start none and compute for long: the race detector has nothing to see in them.
var Alone = []struct{ Package, Pattern, Why string }{
	{"bindings/format", `^TestFormatRoundTrip$`, "decodes and encodes packets of each format in one goroutine"},
	{"host/script", `^Test(SameAsLua|LuaSuite)$`, "Lua programs without tasks"},
	{"runtime/session/contract", `^TestReorderModel$`, "one reorder core against its model"},
}

// Fuzzed are the fuzz targets, readers of what comes from outside, and how many inputs `make test-deep` gives to each: about 15 s on one core. A number, not a
// time, as go test -fuzz fails now and then where its time ends while it works. With their seeds alone they run with their packages.
var Fuzzed = []struct {
	Package, Target string
	Runs            int
}{
	{"bindings", "FuzzControl", 20_000},
	{"bindings/format", "FuzzFormat", 15_000},
	{"host/attach", "FuzzClient", 50_000},
	{"host/attach", "FuzzServer", 20_000},
	{"host/cli", "FuzzManifest", 6_000},
	{"host/golden", "FuzzCompare", 100_000},
	{"host/summary", "FuzzParse", 25_000},
	{"native/inspect", "FuzzCBPF", 150_000},
	{"native/inspect", "FuzzPacket", 200_000},
	{"native/inspect", "FuzzTransform", 150_000},
	{"runtime/expr", "FuzzCompilePacket", 200_000},
	{"runtime/expr", "FuzzParse", 200_000},
	{"runtime/format", "FuzzDecode", 150_000},
	{"runtime/spec", "FuzzOverride", 20_000},
	{"runtime/spec", "FuzzParse", 25_000},
	{"runtime/spec", "FuzzUnits", 75_000},
}

// fuzzing are selections of one target each. Inputs are not made smaller, as this lasts for half a minute each, without new ones.
func fuzzing() (list []Selection) {
	for _, f := range Fuzzed {
		list = append(list, Selection{Tag: f.Target, Packages: []string{f.Package}, Run: "^$", Parallel: 1, Usual: 30 * time.Second,
			Flags: []string{"-fuzz=^" + f.Target + "$", fmt.Sprintf("-fuzztime=%dx", f.Runs), "-fuzzminimizetime=1x"}})
	}
	return list
}

// Skip is the pattern for -skip of a package whose tests run without a pattern of their own; race is whether they run with the race
// detector.
func Skip(pkg string, race bool) string {
	var patterns []string
	for _, d := range DeepOnly {
		if d.Package == pkg {
			patterns = append(patterns, d.Pattern)
		}
	}
	for _, d := range Alone {
		if race && d.Package == pkg {
			patterns = append(patterns, d.Pattern)
		}
	}
	return strings.Join(patterns, "|")
}

// concurrent are the files of tests whose programs run goroutines beside the session: they run with the race detector, too. raced are
// their packages.
var concurrent = regexp.MustCompile(`^(attach|cli|death|groups|internal|metrics|program|prometheus|prompt|report|s3|timed)_test\.go$`)

var raced = []string{"tests/cli", "tests/files", "tests/harness", "tests/network"}

// wait is how many tests run at once in processes whose tests wait more than they work.
const wait = 4

// Selections are what a level runs.
func Selections(level Level) []Selection {
	if level == Test {
		return []Selection{
			{},
			{Packages: []string{"tests/units"}, Parallel: wait, Usual: 4 * time.Minute},
			{Packages: Programs, Split: true, Parallel: wait},
		}
	}
	list := []Selection{
		{Tag: "race", Flags: []string{"-race"}, Threads: true},
		{Tag: "race", Packages: raced, Flags: []string{"-race"}, Files: concurrent, Split: true, Parallel: wait},
		{Packages: []string{"tests/vm"}, Slots: 2, Usual: 10 * time.Minute},
		{Tag: "arm64", Packages: []string{"tests/cli"}, Run: `^TestArm64`, Usual: 4 * time.Minute},
		{Tag: "others", Packages: []string{"tests/cli", "tests/gpu", "tests/gpunetio", "tests/harness", "tests/network"},
			Run: `^Test(DPDKReleases|BPFObject|PTX|GnDevice|Release|GPUSuite|Require)$`, Usual: 2 * time.Minute},
		{Tag: "nvrtc", Packages: []string{"runtime/kernel"}, Run: `^TestNVRTC$`, Usual: 20 * time.Second},
		{Tag: "cases", Packages: []string{"tests/units"}, Run: `^TestManyCases$`, Usual: 2 * time.Minute},
		{Packages: []string{"tests/structure"}, Run: `^TestEngineLayersRebuild$`, Usual: 2 * time.Minute},
		{Packages: []string{"tests/language"}, Run: `^TestLanguage`},
		{Tag: "asan", Packages: []string{"bindings/suite"}, Flags: []string{"-asan"}, Run: `^Test(Members|APIFuzz)$`, Usual: 6 * time.Minute,
			Env: []string{"GOGC=400", "DAQIRI_FUZZ_SECONDS=30"}},
	}
	for _, variants := range []string{"plain|tsan", "msan", "arm64"} {
		tag, _, _ := strings.Cut(variants, "|")
		list = append(list, Selection{Tag: tag, Packages: []string{"tests/units"}, Run: "^TestNative(Variants)?$/^(" + variants + ")", Parallel: 2, Slots: 2,
			Usual: 5 * time.Minute})
	}
	return append(list, fuzzing()...)
}

// Of is the level that runs the tests of a package whose names match a pattern of go test -run, such as "^TestA$/^b$".
func Of(pkg, pattern string) Level {
	pkg = strings.TrimPrefix(pkg, "./")
	names := strings.Split(pattern, "/")
	for i, name := range names {
		names[i] = strings.Trim(name, "^$")
	}
	deep := slices.ContainsFunc(DeepOnly, func(d struct{ Package, Pattern, Why string }) bool {
		return d.Package == pkg && matches(d.Pattern, names)
	})
	if deep {
		return Deep
	}
	return Test
}

// matches reports whether a pattern of go test, with "/" between the levels of subtests, matches all tests of that name.
func matches(pattern string, names []string) bool {
	parts := strings.Split(pattern, "/")
	if len(parts) > len(names) {
		return false
	}
	for i, part := range parts {
		if !regexp.MustCompile(part).MatchString(names[i]) {
			return false
		}
	}
	return true
}

// Does describes what the go tests of a level are.
var Does = map[Level]string{
	Test: "every package, the C units under address and undefined sanitizers, and whole programs",
	Deep: "the C units of other variants, the race detector, arm64, virtual machines, random calls and fuzzing",
}

// Usual is how long the go tests of a level take on two quiet cores.
var Usual = map[Level]time.Duration{Test: 7 * time.Minute, Deep: 18 * time.Minute}

// Floor is how many tests have to pass in continuous integration. Raise it when tests come; lower it only with tests that went.
var Floor = map[Level]int{Test: 3300, Deep: 2250}
