// Package gpu gives tests a GPU that every machine has: libraries that stand in for the CUDA driver, cuBLAS and cuFFT
// (fake/) and for NVRTC (nvrtc/).
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

// Library is the path of the stand-in for the driver, which is built at the first call, once for each state of its sources.
var Library = sync.OnceValues(func() (string, error) { return library("fake_cuda", "", "native/kernels/*.c", "tests/gpu/fake/*.c") })

// Compiler is the path of the stand-in for NVRTC.
var Compiler = sync.OnceValues(func() (string, error) { return library("fake_nvrtc", "runtime/kernel/host.h", "tests/gpu/nvrtc/*.c") })

// library builds the library of this name out of the sources that patterns find. reads is the file that it opens when it
// runs, or "": a copy of the repository, which may share the folder build, has another one.
func library(name, reads string, patterns ...string) (string, error) {
	at := root()
	var sources, headers []string
	find := func(to *[]string, patterns ...string) error {
		for _, pattern := range patterns {
			found, err := filepath.Glob(filepath.Join(at, pattern))
			if err != nil {
				return err
			}
			*to = append(*to, found...)
		}
		slices.Sort(*to)
		return nil
	}
	if err := find(&sources, patterns...); err != nil {
		return "", err
	}
	if err := find(&headers, "native/*/*.h", "tests/gpu/fake/*.h"); err != nil {
		return "", err
	}
	var flags []string
	hash := sha256.New()
	if reads != "" {
		flags = append(flags, `-DHOST_H="`+filepath.Join(at, reads)+`"`)
		fmt.Fprintln(hash, flags)
	}
	for _, file := range append(headers, sources...) {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%s %d\n%s", filepath.Base(file), len(data), data)
	}
	lib := filepath.Join(at, "build", fmt.Sprintf("lib%s-%.16x.so", name, hash.Sum(nil)))
	if _, err := os.Stat(lib); err == nil {
		return lib, nil
	}
	return lib, build(lib, at, append(flags, sources...))
}

// build makes the library under another name first: others may build it at the same time.
func build(lib, at string, args []string) error {
	if err := os.MkdirAll(filepath.Dir(lib), 0o755); err != nil {
		return err
	}
	made := fmt.Sprintf("%s.%d", lib, os.Getpid())
	args = append([]string{"-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
		"-I" + filepath.Join(at, "native"), "-o", made}, args...)
	if out, err := exec.Command("gcc", append(args, "-lpthread", "-lm", "-ldl")...).CombinedOutput(); err != nil {
		return fmt.Errorf("gcc: %w\n%s", err, out)
	}
	return os.Rename(made, lib)
}

// Test is what Use needs of a test.
type Test interface {
	Helper()
	Fatal(args ...any)
}

// Variables name the stand-ins in a program's environment: of the driver, NVRTC, cuBLAS and cuFFT.
func Variables() (map[string]string, error) {
	lib, err := Library()
	if err != nil {
		return nil, err
	}
	compiler, err := Compiler()
	return map[string]string{"DAQIRI_CUDA": lib, "DAQIRI_NVRTC": compiler, "DAQIRI_CUBLAS": lib, "DAQIRI_CUFFT": lib}, err
}

// Use makes the stand-ins this process's libraries, unless DAQIRI_CUDA names a driver: "libcuda.so.1", say, where there
// is a GPU. Before the first session or kernel that needs one.
func Use(t Test) {
	t.Helper()
	if os.Getenv("DAQIRI_CUDA") != "" {
		return
	}
	all, err := Variables()
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range all {
		os.Setenv(name, value)
	}
}
