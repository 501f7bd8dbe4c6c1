package harness

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// S3Secret is the secret key of the server. It must be printed nowhere.
const S3Secret = "a-secret"

// S3Server is a versitygw whose bucket is a folder.
type S3Server struct {
	t       *testing.T
	Dir     string
	Address string
	Cmd     *exec.Cmd
}

// NewS3Server starts a server, which ends with the test.
func NewS3Server(t *testing.T) *S3Server {
	Need(t, "s3")
	s := &S3Server{t: t, Dir: t.TempDir(), Address: FreeAddress(t)}
	for _, d := range []string{"data/bucket", "side"} {
		if err := os.MkdirAll(filepath.Join(s.Dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.Start()
	t.Cleanup(s.Kill)
	return s
}

// Start starts the server, again after Kill.
func (s *S3Server) Start() {
	s.t.Helper()
	program, err := versitygw()
	if err != nil {
		s.t.Fatal(err)
	}
	s.Cmd = exec.Command(program, "--port", s.Address, "--quiet", "posix", "--sidecar", filepath.Join(s.Dir, "side"), filepath.Join(s.Dir, "data"))
	s.Cmd.Dir = s.Dir
	s.Cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY=key", "ROOT_SECRET_KEY="+S3Secret)
	if err := s.Cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", s.Address)
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the server does not listen: %v", err)
		}
	}
}

// Kill ends the server at once.
func (s *S3Server) Kill() {
	_ = s.Cmd.Process.Kill()
	_ = s.Cmd.Wait()
}

// Objects are run_0, run_1 … as they lie on the server's disk, in order; a server that was killed may lack some.
func (s *S3Server) Objects() [][]byte {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.Dir, "data/bucket/run_*"))
	if err != nil {
		s.t.Fatal(err)
	}
	var all [][]byte
	for i := 0; len(all) < len(found) && i < 1<<20; i++ {
		object, err := os.ReadFile(filepath.Join(s.Dir, "data/bucket/run_"+strconv.Itoa(i)))
		if err == nil {
			all = append(all, object)
		} else if !os.IsNotExist(err) {
			s.t.Fatal(err)
		}
	}
	return all
}
