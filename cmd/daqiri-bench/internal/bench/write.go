package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

const (
	ddBlock    = 4 << 20
	probeBytes = 64 * ddBlock
)

// runWrite is write_*: ours and dd write as many bytes to the same folder. A first dd finds out how many take as long as
// the case may.
func runWrite(form string, size int) func(context.Context, *bench, *Result) error {
	return func(ctx context.Context, b *bench, r *Result) error {
		bytes := uint64(probeBytes)
		if err := b.room(bytes); err != nil {
			return err
		}
		dd := b.find("dd")
		if dd == "" {
			r.add("dd is not installed")
		} else if probe, err := b.dd(ctx, dd, bytes); err != nil {
			dd = ""
			r.add(fmt.Sprintf("no peer: %v", err))
		} else {
			r.compareWith("dd if=/dev/zero bs=4M oflag=direct, as many bytes, by its own clock")
			bytes = max(probeBytes, uint64(probe.value*1e9*r.length.Seconds()/(2*pairCount))/ddBlock*ddBlock)
		}
		if err := b.room(bytes); err != nil {
			return err
		}
		r.add(fmt.Sprintf("%.2f GB a file, in %s", float64(bytes)/1e9, b.opts.TempDir))
		var peer side
		if dd != "" {
			peer = func(ctx context.Context, _ time.Duration) (sample, error) { return b.dd(ctx, dd, bytes) }
		}
		return r.compare(ctx, func(ctx context.Context, d time.Duration) (sample, error) {
			return b.write(ctx, d, form, size, bytes, "host")
		}, peer)
	}
}

// room refuses to fill the file system.
func (b *bench) room(bytes uint64) error {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(b.dir, &fs); err != nil {
		return fmt.Errorf("%s: %w", b.dir, err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < 2*bytes {
		return errUnavailable{fmt.Sprintf("%s has %.1f GB free, and files of %.1f GB are to be written; TMPDIR names another folder",
			b.opts.TempDir, float64(free)/1e9, float64(bytes)/1e9)}
	}
	return nil
}

// folder makes a folder for files that are deleted at once: the second function does it.
func (b *bench) folder() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp(b.dir, "files-")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// ddTook finds the seconds in dd's report: they begin when it copies, so that its start is not in them.
var ddTook = regexp.MustCompile(`copied, ([0-9.e+-]+) s,`)

// dd writes so many bytes, by its own clock.
func (b *bench) dd(ctx context.Context, dd string, bytes uint64) (sample, error) {
	dir, remove, err := b.folder()
	if err != nil {
		return sample{}, err
	}
	defer remove()
	_, stderr, err := b.outputs(ctx, dd, "if=/dev/zero", "of="+filepath.Join(dir, "zeros"), "bs=4M", fmt.Sprintf("count=%d", bytes/ddBlock), "oflag=direct")
	if err != nil {
		return sample{}, err
	}
	m := ddTook.FindStringSubmatch(stderr)
	if m == nil {
		return sample{}, fmt.Errorf("dd printed %q", stderr)
	}
	seconds, err := strconv.ParseFloat(m[1], 64)
	return sample{value: float64(bytes) / seconds / 1e9}, err
}

func (b *bench) write(ctx context.Context, d time.Duration, form string, size int, bytes uint64, memory string) (sample, error) {
	dir, remove, err := b.folder()
	if err != nil {
		return sample{}, err
	}
	defer remove()
	f, err := b.last(ctx, d+d, b.ours("write.lua", "--form", form, "--size", fmt.Sprint(size), "--dir", dir, "--bytes", fmt.Sprint(bytes), "--memory", memory)...)
	if err != nil {
		return sample{}, err
	}
	if f["dropped"] != 0 {
		return sample{}, fmt.Errorf("write.lua: %.0f packets were dropped", f["dropped"])
	}
	if written := folderBytes(dir); written < bytes {
		return sample{}, fmt.Errorf("write.lua: %d bytes are in %s, of %d", written, dir, bytes)
	}
	return sample{f["bytes"] / f["seconds"] / 1e9, figures{"cpus": f["cpu_seconds"] / f["seconds"]}}, nil
}

// folderBytes adds up the files of a folder.
func folderBytes(dir string) uint64 {
	sum := uint64(0)
	_ = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			sum += uint64(info.Size())
		}
		return nil
	})
	return sum
}
