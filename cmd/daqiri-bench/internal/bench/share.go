package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// shareBegin is the time within which the script must listen for its reader.
const shareBegin = 10 * time.Second

// runShare is share: blocks that a reader in another process takes and releases, against the same pipe without s:share. The CPU time is that of
// the thread that polls the queues, so that a host busy with other threads, the reader's among them, does not count.
func runShare(ctx context.Context, b *bench, r *Result) error {
	r.compareWith("the same pipe without s:share")
	r.add("missed_share: of the blocks, those that the reader did not get; gb_per_second: by the clock")
	return r.compare(ctx, b.lent, func(ctx context.Context, d time.Duration) (sample, error) {
		f, err := b.last(ctx, d, b.ours("share.lua", "--seconds", text(d*10/11))...)
		return assembled(f, err)
	})
}

// lent runs the script, and beside it a reader.
func (b *bench) lent(ctx context.Context, d time.Duration) (sample, error) {
	dir, err := os.MkdirTemp(b.dir, "share-")
	if err != nil {
		return sample{}, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "live")
	reader, err := b.start(ctx, d+shareBegin, b.peer("share", "--path", path, "--for", shareBegin.String())...)
	if err != nil {
		return sample{}, err
	}
	defer reader.stop()
	f, err := b.last(ctx, d+shareBegin, b.ours("share.lua", "--path", path, "--seconds", text(d*10/11))...)
	s, err := assembled(f, err)
	if err != nil {
		return s, err
	}
	got, err := reader.next()
	if err == nil && (got["skipped"] < got["missed"] || got["blocks"] < f["lent"]) {
		err = fmt.Errorf("the reader got %.0f of at least %.0f blocks, and %.0f numbers were absent, though it missed %.0f blocks", got["blocks"], f["lent"],
			got["skipped"], got["missed"])
	}
	s.more["missed_share"] = f["missed"] / max(1, f["blocks"])
	return s, err
}

// assembled returns the sample of a run of share.lua.
func assembled(f figures, err error) (sample, error) {
	if err == nil && (f["dropped"] != 0 || f["partial"] != 0) {
		err = fmt.Errorf("share.lua: %.0f packets were dropped, %.0f blocks were incomplete", f["dropped"], f["partial"])
	}
	return sample{f["bytes"] / f["cpu_seconds"] / 1e9, figures{"blocks_per_second": f["blocks"] / f["seconds"],
		"gb_per_second": f["bytes"] / f["seconds"] / 1e9, "cpus": f["process_cpu_seconds"] / f["seconds"]}}, err
}
