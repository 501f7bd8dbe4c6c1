package levels

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// S3Version is that of the S3 server of the tests, versitygw.
const S3Version = "v1.8.0"

// Shared is the folder beside the Go module cache in which clones of the project keep what is the same for all of them: tools that are
// built once, kernels for virtual machines, and how long tests took. Where it cannot be written it is the folder build. The first call
// is made in the project's root.
var Shared = sync.OnceValue(func() string {
	out, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err == nil {
		dir := filepath.Join(filepath.Dir(strings.TrimSpace(string(out))), "daqiri-run")
		if os.MkdirAll(dir, 0o755) == nil && writable(dir) {
			return dir
		}
	}
	dir, err := filepath.Abs("build")
	if err != nil {
		return "build"
	}
	_ = os.MkdirAll(dir, 0o755)
	return dir
})

func writable(dir string) bool {
	f, err := os.CreateTemp(dir, "try-")
	if err != nil {
		return false
	}
	f.Close()
	return os.Remove(f.Name()) == nil
}

// S3Server is where the S3 server of the tests is, once it has been built.
func S3Server() string { return filepath.Join(Shared(), "versitygw-"+S3Version) }

// Env is what tests find in their environment: where the shared folder and the S3 server are.
func Env() []string { return []string{"VERSITYGW=" + S3Server(), "DAQIRI_TEST_SHARED=" + Shared()} }
