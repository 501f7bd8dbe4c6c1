// Package fake gives tests network cards that no machine has to have: a library that stands in for libibverbs (../verbs).
// tests/network/dpdk_nic_test.go has that for DPDK.
//
// It may import the standard library, and only tests import it.
package fake

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

// Verbs is the path of the library, which is built at the first call, once for each state of its sources.
var Verbs = sync.OnceValues(func() (string, error) {
	_, file, _, _ := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(filepath.Dir(file)), "verbs")
	sources := []string{filepath.Join(dir, "verbs.c"), filepath.Join(dir, "flow.c")}
	hash := sha256.New()
	for _, f := range append([]string{filepath.Join(dir, "verbs.h")}, sources...) {
		text, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%d\n%s", len(text), text)
	}
	lib := filepath.Join(dir, "../../../build", fmt.Sprintf("libfake_verbs-%.16x.so", hash.Sum(nil)))
	if _, err := os.Stat(lib); err == nil {
		return lib, nil
	}
	if err := os.MkdirAll(filepath.Dir(lib), 0o755); err != nil {
		return "", err
	}
	made := fmt.Sprintf("%s.%d", lib, os.Getpid()) // others may build it at the same time
	args := append([]string{"-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-o", made}, sources...)
	if out, err := exec.Command("gcc", append(args, "-lpthread")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("gcc: %w\n%s", err, out)
	}
	return lib, os.Rename(made, lib)
})

// UseVerbs makes it this process's libibverbs. Before the first session that needs one.
func UseVerbs() error {
	lib, err := Verbs()
	if err != nil {
		return err
	}
	return os.Setenv("DAQIRI_VERBS", lib)
}
