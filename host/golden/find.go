package golden

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// testCase is a script with golden files next to it; base is its path without ".lua".
type testCase struct {
	name   string // name in the report
	script string // absolute path
	base   string // absolute path
}

// expectation is the content of a script's golden files.
type expectation struct {
	stdout    string
	exit      int
	args, env []string
	files     []string // relative to the script's working folder
	counters  []byte   // nil: not compared
}

// find lists the cases below opts.Paths, sorted by name.
func find(opts Options) ([]testCase, error) {
	paths := opts.Paths
	if len(paths) == 0 {
		paths = []string{"."}
	}
	seen := map[string]bool{}
	var cases []testCase
	for _, path := range paths {
		scripts, err := scriptsAt(path, opts.Update)
		if err != nil {
			return nil, err
		}
		for _, name := range scripts {
			abs, err := filepath.Abs(name)
			if err != nil {
				return nil, err
			}
			if seen[abs] || opts.Filter != nil && !opts.Filter.MatchString(name) {
				continue
			}
			seen[abs] = true
			cases = append(cases, testCase{name: name, script: abs, base: strings.TrimSuffix(abs, ".lua")})
		}
	}
	if len(cases) == 0 {
		return nil, nothingFound(paths, opts)
	}
	slices.SortFunc(cases, func(a, b testCase) int { return strings.Compare(a.name, b.name) })
	return cases, nil
}

func nothingFound(paths []string, opts Options) error {
	where := strings.Join(paths, ", ")
	if opts.Filter != nil {
		return fmt.Errorf("%s: %w with a name that matches %q", where, ErrNoTests, opts.Filter)
	}
	return fmt.Errorf("%s: %w: a test is a NAME.lua with its expected output in NAME.golden beside it", where, ErrNoTests)
}

// scriptsAt lists the tests at path: a script itself, or all tests in a folder and its subfolders.
func scriptsAt(path string, update bool) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoTests, err)
	}
	if !info.IsDir() {
		if !strings.HasSuffix(path, ".lua") {
			return nil, fmt.Errorf("%s: %w: not a folder and not a .lua script", path, ErrNoTests)
		}
		if !update && !hasGolden(path) {
			return nil, fmt.Errorf("%s: %w: it has no golden output beside it (--update writes it)", path, ErrNoTests)
		}
		return []string{filepath.Clean(path)}, nil
	}
	var scripts []string
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != path && (strings.HasPrefix(d.Name(), ".") || strings.HasSuffix(d.Name(), ".files.d")):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(p, ".lua") && hasGolden(p):
			scripts = append(scripts, p)
		}
		return nil
	})
	return scripts, err
}

func hasGolden(script string) bool {
	info, err := os.Stat(strings.TrimSuffix(script, ".lua") + ".golden")
	return err == nil && info.Mode().IsRegular()
}

// load reads the golden files of the script. An absent file expects nothing.
func (c testCase) load() (expectation, error) {
	var e expectation
	stdout, _, err := c.read(".golden")
	if err != nil {
		return e, err
	}
	e.stdout = string(stdout)
	exit, found, err := c.read(".exit")
	if err != nil {
		return e, err
	}
	if found {
		if e.exit, err = strconv.Atoi(strings.TrimSpace(string(exit))); err != nil || e.exit < 0 || e.exit > 255 {
			return e, fmt.Errorf("%s.exit: %q is not an exit code (0..255)", c.base, strings.TrimSpace(string(exit)))
		}
	}
	if e.args, e.env, err = c.loadArgs(); err != nil {
		return e, err
	}
	if e.files, err = c.loadFiles(); err != nil {
		return e, err
	}
	counters, found, err := c.read(".counters")
	if found && counters == nil {
		counters = []byte{}
	}
	e.counters = counters
	return e, err
}

// read returns the content of the script's golden file with the given suffix, and whether the file exists.
func (c testCase) read(suffix string) ([]byte, bool, error) {
	data, err := os.ReadFile(c.base + suffix)
	if os.IsNotExist(err) {
		return nil, false, nil
	}
	return data, err == nil, err
}

// withPort replaces {{port}} by a free TCP port.
func withPort(data []byte) ([]byte, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("{{port}}: %w", err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return bytes.ReplaceAll(data, []byte("{{port}}"), []byte(port)), err
}

// loadArgs splits NAME.args into arguments and the KEY=VALUE of "env KEY=VALUE" lines. All occurrences of {{port}} are replaced by the same
// unused port.
func (c testCase) loadArgs() (args, env []string, err error) {
	data, _, err := c.read(".args")
	if err == nil && bytes.Contains(data, []byte("{{port}}")) {
		data, err = withPort(data)
	}
	if err != nil {
		return nil, nil, err
	}
	for i, line := range lines(string(data)) {
		setting, isEnv := strings.CutPrefix(line, "env ")
		switch {
		case isEnv && strings.Index(setting, "=") < 1:
			return nil, nil, fmt.Errorf("%s.args:%d: %q is not of the form env KEY=VALUE", c.base, i+1, line)
		case isEnv:
			env = append(env, setting)
		case line != "":
			args = append(args, line)
		}
	}
	return args, env, nil
}

// loadFiles returns the names in NAME.files.
func (c testCase) loadFiles() ([]string, error) {
	data, _, err := c.read(".files")
	if err != nil {
		return nil, err
	}
	var files []string
	for i, line := range lines(string(data)) {
		if line == "" {
			continue
		}
		if !filepath.IsLocal(line) {
			return nil, fmt.Errorf("%s.files:%d: %q leaves the folder that the script runs in", c.base, i+1, line)
		}
		files = append(files, filepath.Clean(line))
	}
	return files, nil
}

// lines splits text into lines without their newlines.
func lines(text string) []string {
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
