package bench

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

const (
	s3Frame   = 1024
	s3Packets = 256 // of an object
	s3Object  = s3Frame * s3Packets
	s3Probe   = 256 // objects
	s3Wait    = 10 * time.Second
)

// s3Keys are what the server takes and its clients have: it listens to this machine only, for a few seconds.
var s3Keys = []string{"ROOT_ACCESS_KEY=bench", "ROOT_SECRET_KEY=of-the-bench", "AWS_ACCESS_KEY_ID=bench", "AWS_SECRET_ACCESS_KEY=of-the-bench"}

// runS3 is s3: ours and the client alone upload as many objects to a server that is new each time. A first upload finds
// out how many take as long as the case may.
func runS3(ctx context.Context, b *bench, r *Result) error {
	with := *b
	with.env = append(slices.Clone(b.env), s3Keys...)
	b = &with
	probe, err := b.upload(ctx, r.length, s3Probe, b.putReady)
	if err != nil {
		return err
	}
	n := max(s3Probe, int(probe.value*1e9/s3Object*r.length.Seconds()/(2*pairCount)))
	if err := b.room(uint64(n) * s3Object); err != nil {
		return err
	}
	r.compareWith("the same client, as many objects from one ready buffer, as many requests at a time")
	r.add(fmt.Sprintf("%d objects, in %s; the server has its share of the CPUs", n, b.opts.TempDir))
	return r.compare(ctx, func(ctx context.Context, d time.Duration) (sample, error) {
		return b.upload(ctx, d, n, b.putPackets)
	}, func(ctx context.Context, d time.Duration) (sample, error) {
		return b.upload(ctx, d, n, b.putReady)
	})
}

// upload has put upload n objects, and looks for their bytes in the server's folder.
func (b *bench) upload(ctx context.Context, d time.Duration, n int, put func(*s3Server, int) []string) (sample, error) {
	s, err := b.s3Server(ctx)
	if err != nil {
		return sample{}, err
	}
	defer s.stop()
	f, err := b.last(ctx, d+d, put(s, n)...)
	if err != nil {
		return sample{}, err
	}
	if there, want := folderBytes(s.bucket()), uint64(n)*s3Object; there < want {
		return sample{}, fmt.Errorf("%d bytes are in %s, of %d", there, s.bucket(), want)
	}
	gb := f["bytes"] / 1e9
	return sample{gb / f["seconds"], figures{"cpu_seconds_per_gb": f["cpu_seconds"] / gb}}, nil
}

func (b *bench) putPackets(s *s3Server, n int) []string {
	return b.ours("s3.lua", "--endpoint", s.endpoint, "--per", strconv.Itoa(s3Packets), "--size", strconv.Itoa(s3Frame), "--objects", strconv.Itoa(n))
}

func (b *bench) putReady(s *s3Server, n int) []string {
	return b.peer("put", "--endpoint", s.endpoint, "--bucket", "bucket", "--size", strconv.Itoa(s3Object), "--n", strconv.Itoa(n))
}

// s3Server is a versitygw: objects are files in a folder.
type s3Server struct {
	cmd           *exec.Cmd
	dir, endpoint string
	output        bytes.Buffer
	over          chan struct{} // closed at its end
	cancel        context.CancelFunc
}

// s3Server starts one on a free port. The caller stops it.
func (b *bench) s3Server(ctx context.Context) (*s3Server, error) {
	program := cmp.Or(b.opts.S3Server, b.find("versitygw"))
	if _, err := os.Stat(program); err != nil {
		return nil, errUnavailable{"needs the S3 server versitygw: 'go install github.com/versity/versitygw/cmd/versitygw@latest' builds it; " +
			"it has to be on PATH, or VERSITYGW has its path"}
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &s3Server{endpoint: "http://127.0.0.1:" + port, over: make(chan struct{})}
	if s.dir, err = os.MkdirTemp(b.dir, "s3-"); err != nil {
		return nil, err
	}
	for _, dir := range []string{s.bucket(), filepath.Join(s.dir, "side")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	ctx, s.cancel = context.WithCancel(ctx)
	s.cmd = b.command(ctx, program, "--port", "127.0.0.1:"+port, "--quiet", "--keep-alive", "posix", "--sidecar", filepath.Join(s.dir, "side"), filepath.Join(s.dir, "data"))
	s.cmd.Stdout, s.cmd.Stderr = &s.output, &s.output
	if err := s.cmd.Start(); err != nil {
		s.cancel()
		return nil, fmt.Errorf("%s: %w", filepath.Base(program), err)
	}
	go func() {
		_ = s.cmd.Wait() // its output explains more
		close(s.over)
	}()
	if err := s.listens("127.0.0.1:" + port); err != nil {
		s.stop()
		return nil, programError(filepath.Base(program), err, s.output.Bytes())
	}
	return s, nil
}

// listens waits until the server takes connections.
func (s *s3Server) listens(address string) error {
	for deadline := time.Now().Add(s3Wait); ; {
		c, err := net.Dial("tcp", address)
		if err == nil {
			return c.Close()
		}
		if time.Now().After(deadline) {
			return err
		}
		select {
		case <-s.over:
			return fmt.Errorf("ended before it listened on %s", address)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *s3Server) bucket() string { return filepath.Join(s.dir, "data", "bucket") }

// stop ends the server and deletes its objects.
func (s *s3Server) stop() {
	s.cancel()
	<-s.over
	_ = os.RemoveAll(s.dir)
}
