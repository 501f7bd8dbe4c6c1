package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/daqiri/daqiri-run/tests/levels"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// checkBudget is how long the tests that check chooses may take, by what they took the last time.
const checkBudget = 35 * time.Second

// check formats nothing and installs nothing: it checks the format of the edited files, the layers, vets the packages they are in, and runs
// the C units and the tests of packages that depend on them, the nearest first, as many as fit in checkBudget.
func check(ctx context.Context) error {
	files, err := editedFiles(ctx)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		fmt.Println("no file was edited")
		return nil
	}
	fmt.Printf("edited: %s\n", strings.Join(files, " "))
	past := readHistory()
	units := unitsThatSee(files)
	packages, err := listPackages(ctx)
	if err != nil {
		return err
	}
	near, left := chosen(packages, files, past)
	for _, s := range []step{
		{"format", "checks the format of the edited files", time.Second, time.Minute, func(ctx context.Context) error { return checkFormat(ctx, files) }},
		{"layers", "checks layers, READMEs and links", 3 * time.Second, 2 * time.Minute,
			command("go", "test", "-count=1", "./tests/structure", "-run", "Test(Architecture|Readmes|FormatText|MarkdownLinks)")},
		{"vet of edited packages", "runs go vet", 5 * time.Second, 5 * time.Minute, goCommand([]string{"go", "vet"}, packagesOf(packages, files))},
		{"C units", fmt.Sprintf("runs %d C units that see the files", len(units)), 10 * time.Second, 10 * time.Minute, runUnits(units)},
		{"packages", fmt.Sprintf("runs the tests of %d packages that depend on the files", len(near)), 20 * time.Second, 10 * time.Minute,
			goCommand([]string{"go", "test"}, near)},
	} {
		if err := s.do(ctx, past); err != nil {
			return err
		}
	}
	past.save()
	if len(left) > 0 {
		fmt.Printf("left to make test, as they take longer: %s\n", strings.Join(left, " "))
	}
	return nil
}

// editedFiles are the files that differ from the last commit; where none does, those of the last commit.
func editedFiles(ctx context.Context) ([]string, error) {
	var files []string
	for _, args := range [][]string{
		{"diff", "--name-only", "HEAD"}, {"ls-files", "--others", "--exclude-standard"}, {"diff", "--name-only", "HEAD~1", "HEAD"},
	} {
		if args[0] == "diff" && len(args) == 4 && len(files) > 0 {
			break
		}
		out, err := exec.CommandContext(ctx, "git", args...).Output()
		if err != nil {
			return nil, fmt.Errorf("git %s: %w (make check asks git what was edited)", strings.Join(args, " "), err)
		}
		files = append(files, strings.Fields(string(out))...)
	}
	return files, nil
}

// checkFormat compares the edited files with what gofmt and clang-format make of them.
func checkFormat(ctx context.Context, files []string) error {
	var goFiles, cFiles []string
	for _, name := range files {
		if !exists(name) {
			continue
		}
		switch path.Ext(name) {
		case ".go":
			goFiles = append(goFiles, name)
		case ".c", ".h":
			cFiles = append(cFiles, name)
		}
	}
	var err error
	if len(goFiles) > 0 {
		var out []byte
		out, err = exec.CommandContext(ctx, "gofmt", append([]string{"-l"}, goFiles...)...).Output()
		if len(out) > 0 {
			err = fmt.Errorf("not formatted: %s (hint: make fmt)", strings.Join(strings.Fields(string(out)), " "))
		}
	}
	if _, missing := exec.LookPath("clang-format"); len(cFiles) > 0 && missing == nil {
		err = errors.Join(err, execute(ctx, nil, append([]string{"clang-format", "--dry-run", "-Werror"}, cFiles...)...))
	}
	return err
}

// A listed is a package of the project.
type listed struct {
	dir   string
	near  []string // folders of packages that it and its tests import
	deps  []string // all that it depends on
	tests bool
}

func listPackages(ctx context.Context) ([]listed, error) {
	const form = `{{.ImportPath}}|{{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}|{{join .Deps " "}}|{{if or .TestGoFiles .XTestGoFiles}}y{{end}}`
	out, err := exec.CommandContext(ctx, "go", "list", "-f", form, "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []listed
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), "|")
		packages = append(packages, listed{dirOf(f[0])[0], dirOf(f[1]), dirOf(f[2]), f[3] != ""})
	}
	return packages, nil
}

// dirOf are the folders of the project's packages among import paths.
func dirOf(paths string) []string {
	var dirs []string
	for _, p := range strings.Fields(paths) {
		if dir, ok := strings.CutPrefix(p, tree.Module+"/"); ok {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// packagesOf are the packages in whose folders the files lie.
func packagesOf(packages []listed, files []string) []string {
	var dirs []string
	for _, name := range files {
		dir := path.Dir(name)
		if slices.ContainsFunc(packages, func(p listed) bool { return p.dir == dir }) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// chosen are the packages whose tests run, the nearest and quickest first, and those that are left out.
func chosen(packages []listed, files []string, past *history) (near, left []string) {
	edited := packagesOf(packages, files)
	distance := map[string]int{}
	for _, p := range packages {
		isEdited := func(dir string) bool { return slices.Contains(edited, dir) }
		switch {
		case !p.tests || p.dir == "tests/vm" || p.dir == "tests/units":
		case isEdited(p.dir):
			distance[p.dir] = 1
		case slices.ContainsFunc(p.near, isEdited):
			distance[p.dir] = 2
		case slices.ContainsFunc(p.deps, isEdited):
			distance[p.dir] = 3
		}
	}
	took := func(dir string) time.Duration {
		if slices.Contains(levels.Programs, dir) { // in groups
			return time.Hour
		}
		return past.last(tree.Module+"/"+dir, 5*time.Second)
	}
	var all []string
	for dir := range distance {
		all = append(all, dir)
	}
	slices.SortFunc(all, func(a, b string) int {
		if d := distance[a] - distance[b]; d != 0 {
			return d
		}
		return int(took(a) - took(b))
	})
	budget := checkBudget
	for _, dir := range all {
		if t := took(dir); t <= budget {
			budget -= t
			near = append(near, dir)
		} else {
			left = append(left, dir)
		}
	}
	return near, left
}

// goCommand runs a go command on packages, if there are any.
func goCommand(line, dirs []string) func(context.Context) error {
	return func(ctx context.Context) error {
		if len(dirs) == 0 {
			return nil
		}
		line := slices.Clone(line)
		for _, dir := range dirs {
			line = append(line, "./"+dir)
		}
		return execute(ctx, nil, line...)
	}
}
