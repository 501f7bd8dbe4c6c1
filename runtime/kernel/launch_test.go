package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// workers returns the launch processes of this program, including those of other tests' launchers.
func workers(t *testing.T) (dirs []string) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		line, _ := os.ReadFile(name)
		status, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "status"))
		if string(line) == "daqiri-run: launches\x00" && strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", os.Getpid())) {
			dirs = append(dirs, filepath.Dir(name))
		}
	}
	return dirs
}

// shared returns the addresses of shared memory mapped by a process.
func shared(t *testing.T, dir string) (from []string) {
	t.Helper()
	maps := string(must(os.ReadFile(dir + "/maps"))(t))
	for line := range strings.Lines(maps) {
		if strings.Contains(line, " rw-s ") {
			address, _, _ := strings.Cut(line, "-")
			from = append(from, address)
		}
	}
	return from
}

// TestLaunchMemory checks that a launch on the host works on its arrays and that its process maps no others.
func TestLaunchMemory(t *testing.T) {
	cacheHere(t)
	k := build(t, onHost("__global__ void f(int *a, int by) { a[0] += by; }"))
	l := must(NewLauncher(k, Grid{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}, nil))(t)
	arrays := []*Array{array(t, "host", "int32", k.GPU, 10), array(t, "host", "int32", k.GPU, 20)}
	seen, others := map[string]bool{}, workers(t)
	own := func() (dirs []string) {
		return slices.DeleteFunc(workers(t), func(dir string) bool { return slices.Contains(others, dir) })
	}
	for i := range 6 {
		a := arrays[i/2%2]
		op := must(l.Launch(t.Context(), []Arg{must(k.ArrayArg(0, a))(t), must(k.NumberArg(1, 1))(t)}))(t)
		op.Free()
		dirs := own()
		if len(dirs) != 1 {
			t.Fatalf("processes %v", dirs)
		}
		maps := shared(t, dirs[0])
		if len(maps) != 1 {
			t.Errorf("launch %d: its process has memory at %v", i, maps)
		}
		seen[maps[0]] = true
	}
	if len(seen) != 2 {
		t.Errorf("memory was at %v", seen)
	}
	for i, want := range []int64{14, 22} {
		if got, err := arrays[i].Get(0); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("array %d has %v, want %v: %v", i, got, want, err)
		}
	}
	l.Rest()
	if dirs := own(); len(dirs) > 0 {
		t.Errorf("%v is still there", dirs)
	}
}
