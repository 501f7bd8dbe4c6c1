package language

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/daqiri/daqiri-run/tests/tree"
)

// A finding is one place that breaks a rule.
type finding struct {
	file    string
	line    int
	rule    string // without the name of the style
	message string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", f.file, f.line, f.rule, f.message)
}

// place returns the area and the rule of a finding.
func (f finding) place() place {
	area, _, below := strings.Cut(f.file, "/")
	if !below {
		area = "root"
	}
	return place{area, f.rule}
}

// command returns the path of vale: that of the environment variable VALE, which the suite sets, or the one that the go command builds
// and caches.
func command() (string, error) {
	if p := os.Getenv("VALE"); p != "" {
		return p, nil
	}
	cmd := exec.Command("go", "tool", "-modfile=tests/tools/vale/go.mod", "-n", "vale")
	cmd.Dir = tree.Root
	out, err := cmd.Output()
	if err != nil {
		return "", errors.New("it could not be fetched or built")
	}
	return strings.TrimSpace(string(out)), nil
}

// extensions are those of the files that .vale.ini covers, and .cu, which vale reads as C.
var extensions = []string{".md", ".go", ".c", ".h", ".cu", ".lua", ".py"}

// covered reports whether a file of the project is checked: not test data, and not daqiri.d.lua, whose comments are those of Go code.
func covered(name string) bool {
	return slices.Contains(extensions, path.Ext(name)) && !strings.Contains(name, "/testdata/") && !strings.HasSuffix(name, ".d.lua")
}

// lint runs vale on files below dir, several processes at once, and returns its findings in the order of files and lines.
func lint(vale, dir string, files []string) ([]finding, error) {
	staged, err := os.MkdirTemp("", "daqiri-run-language-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(staged)
	var names, cuda []string
	for _, name := range files {
		if path.Ext(name) != ".cu" {
			names = append(names, name)
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = os.MkdirAll(filepath.Join(staged, path.Dir(name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(staged, name+".c"), text, 0o600)
		}
		if err != nil {
			return nil, err
		}
		cuda = append(cuda, name+".c")
	}
	var all []finding
	var failed error
	var mu sync.Mutex
	var wg sync.WaitGroup
	run := func(dir string, names []string) {
		wg.Go(func() {
			found, err := lintOnce(vale, dir, names)
			mu.Lock()
			defer mu.Unlock()
			all, failed = append(all, found...), errors.Join(failed, err)
		})
	}
	for part := range slices.Chunk(names, len(names)/runtime.NumCPU()+1) {
		run(dir, part)
	}
	if len(cuda) > 0 {
		run(staged, cuda)
	}
	wg.Wait()
	slices.SortFunc(all, func(a, b finding) int {
		return cmp.Or(strings.Compare(a.file, b.file), a.line-b.line, strings.Compare(a.rule, b.rule), strings.Compare(a.message, b.message))
	})
	return all, failed
}

// lintOnce is one process of vale. A name that ends in .cu.c stands for a CUDA source.
func lintOnce(vale, dir string, names []string) ([]finding, error) {
	args := []string{"--config=" + filepath.Join(tree.Root, ".vale.ini"), "--output=JSON", "--no-exit", "--no-global", "--"}
	cmd := exec.Command(vale, append(args, names...)...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, err
	}
	var alerts map[string][]struct {
		Check, Message string
		Line           int
	}
	if err := json.Unmarshal(out, &alerts); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	var found []finding
	for name, list := range alerts {
		if strings.HasSuffix(name, ".cu.c") {
			name = strings.TrimSuffix(name, ".c")
		}
		for _, a := range list {
			found = append(found, finding{name, a.Line, strings.TrimPrefix(a.Check, "daqiri."), a.Message})
		}
	}
	return found, nil
}
