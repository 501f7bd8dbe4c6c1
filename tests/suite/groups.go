package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/daqiri/daqiri-run/tests/levels"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// groupLimit ends a group of tests that does not end by itself; the Go runtime then names the test that is running.
const groupLimit = 25 * time.Minute

// A group is a process that runs some tests and prints what test2json prints.
type group struct {
	name string // what its package is called in reports
	argv []string
	dir  string
	env  []string
	run  string // patterns for -run and -skip, "" for none
	skip string
	flag string // what stands before the names of flags of tests: "-" for go test, "-test." for a test program
	rest []string

	parallel int           // how many of its tests run at once; 0: as go test does
	slots    int           // how many of the groups that may run at once it counts for; 0: one
	usual    time.Duration // how long it takes, until that is measured
}

// only is the group with the tests that a pattern matches.
func (g group) only(pattern string) group {
	g.run, g.skip = pattern, ""
	return g
}

// line is the command line of the group.
func (g group) line() []string {
	line := slices.Clone(g.argv)
	line = append(line, fmt.Sprintf("%stimeout=%v", g.flag, groupLimit))
	if g.parallel > 0 {
		line = append(line, fmt.Sprintf("%sparallel=%d", g.flag, g.parallel))
	}
	if g.run != "" {
		line = append(line, g.flag+"run="+g.run)
	}
	if g.skip != "" {
		line = append(line, g.flag+"skip="+g.skip)
	}
	return append(line, g.rest...)
}

// groupsOf are all groups of a level. The programs of packages that are split are built first.
func groupsOf(ctx context.Context, level levels.Level) ([]group, error) {
	var groups []group
	for _, s := range levels.Selections(level) {
		packages := s.Packages
		if packages == nil {
			var err error
			if packages, err = testedPackages(ctx); err != nil {
				return nil, err
			}
		}
		for _, pkg := range packages {
			if s.Threads && !startsGoroutines(pkg) {
				continue
			}
			made, err := groupsIn(ctx, s, pkg)
			if err != nil {
				return nil, err
			}
			groups = append(groups, made...)
		}
	}
	return groups, nil
}

// testedPackages are the folders with tests, but for those apart.
func testedPackages(ctx context.Context) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var dirs []string
	for _, path := range strings.Fields(string(out)) {
		dir := strings.TrimPrefix(path, tree.Module+"/")
		if !slices.Contains(levels.Apart, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

func groupsIn(ctx context.Context, s levels.Selection, pkg string) ([]group, error) {
	name := tree.Module + "/" + pkg
	if s.Tag != "" {
		name += "#" + s.Tag
	}
	if !s.Split {
		return []group{{
			name: name, argv: append([]string{"go", "test", "-json", "-count=1"}, s.Flags...), env: s.Env,
			run: s.Run, skip: skipOf(s, pkg), flag: "-", rest: []string{"./" + pkg}, parallel: s.Parallel, slots: s.Slots, usual: s.Usual,
		}}, nil
	}
	program, err := testProgram(ctx, pkg, s.Flags)
	if err != nil {
		return nil, err
	}
	files, err := testsByFile(pkg)
	if err != nil {
		return nil, err
	}
	var groups []group
	for file, tests := range files {
		if s.Files != nil && !s.Files.MatchString(file) {
			continue
		}
		part := tree.Module + "/" + pkg + "/" + strings.TrimSuffix(file, "_test.go")
		if s.Tag != "" {
			part += "#" + s.Tag
		}
		groups = append(groups, group{
			name: part, dir: pkg, env: s.Env, run: "^(" + strings.Join(tests, "|") + ")$", skip: skipOf(s, pkg), flag: "-test.",
			argv:     []string{"go", "tool", "test2json", "-t", "-p", part, program, "-test.v=test2json", "-test.paniconexit0"},
			parallel: s.Parallel, slots: s.Slots,
		})
	}
	return groups, nil
}

// skipOf is what a selection leaves out of a package.
func skipOf(s levels.Selection, pkg string) string {
	if s.Run != "" || pkg == "tests/vm" {
		return ""
	}
	return levels.Skip(pkg, slices.Contains(s.Flags, "-race"))
}

// goStatement finds what starts a goroutine.
var goStatement = regexp.MustCompile(`(?m)^\s*go [\w(]|\.Go\(`)

// startsGoroutines reports whether a file of the package does, and the package is none of the suite's own.
func startsGoroutines(pkg string) bool {
	if strings.HasPrefix(pkg, "tests/") && pkg != "tests/soak" {
		return false
	}
	names, _ := filepath.Glob(filepath.Join(pkg, "*.go"))
	return slices.ContainsFunc(names, func(name string) bool {
		text, err := os.ReadFile(name)
		return err == nil && goStatement.Match(text)
	})
}

// testProgram builds the tests of a package.
func testProgram(ctx context.Context, pkg string, flags []string) (string, error) {
	program, err := filepath.Abs(filepath.Join("build", "suite", strings.ReplaceAll(pkg, "/", "-")+strings.Join(flags, "")+".test"))
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"test", "-c", "-o", program}, flags, []string{"./" + pkg})...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go test -c ./%s: %w\n%s", pkg, err, out)
	}
	return program, nil
}

// testsByFile are the names of the tests in each file of a package that has some.
func testsByFile(pkg string) (map[string][]string, error) {
	names, err := filepath.Glob(filepath.Join(pkg, "*_test.go"))
	if err != nil {
		return nil, err
	}
	tests := map[string][]string{}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
				tests[filepath.Base(name)] = append(tests[filepath.Base(name)], f.Name.Name)
			}
		}
	}
	return tests, nil
}
