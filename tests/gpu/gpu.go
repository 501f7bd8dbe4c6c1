// Package gpu gives tests a GPU that every machine has: a library that stands in for the CUDA driver (fake/fake_cuda.c).
//
// It may import the standard library and tests/require, and only tests import it.
package gpu

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
)

// Root is the repository's folder.
func root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Library is the path of the stand-in, which is built at the first call, once for each state of its sources.
var Library = sync.OnceValues(func() (string, error) {
	at := root()
	var sources, headers []string
	for pattern, files := range map[string]*[]string{"native/kernels/*.c": &sources, "tests/gpu/fake/*.c": &sources, "native/*/*.h": &headers, "tests/gpu/fake/*.h": &headers} {
		found, err := filepath.Glob(filepath.Join(at, pattern))
		if err != nil {
			return "", err
		}
		*files = append(*files, found...)
	}
	slices.Sort(sources)
	slices.Sort(headers)
	hash := sha256.New()
	for _, file := range append(headers, sources...) {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%s %d\n%s", filepath.Base(file), len(data), data)
	}
	lib := filepath.Join(at, "build", fmt.Sprintf("libfake_cuda-%.16x.so", hash.Sum(nil)))
	if _, err := os.Stat(lib); err == nil {
		return lib, nil
	}
	return lib, build(lib, filepath.Join(at, "native"), sources)
})

// build makes the library under another name first: others may build it at the same time.
func build(lib, include string, sources []string) error {
	if err := os.MkdirAll(filepath.Dir(lib), 0o755); err != nil {
		return err
	}
	made := fmt.Sprintf("%s.%d", lib, os.Getpid())
	args := append([]string{"-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-I" + include,
		"-o", made}, sources...)
	if out, err := exec.Command("gcc", append(args, "-lpthread", "-lm")...).CombinedOutput(); err != nil {
		return fmt.Errorf("gcc: %w\n%s", err, out)
	}
	return os.Rename(made, lib)
}

// Test is what Use needs of a test.
type Test interface {
	Helper()
	Fatal(args ...any)
}

// Use makes the stand-in this process's driver, unless DAQIRI_CUDA names one: "libcuda.so.1", say, where there is a GPU.
// Before the first session that needs one.
func Use(t Test) {
	t.Helper()
	if os.Getenv("DAQIRI_CUDA") != "" {
		return
	}
	lib, err := Library()
	if err != nil {
		t.Fatal(err)
	}
	os.Setenv("DAQIRI_CUDA", lib)
}
