package s3

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/minio/minio-go/v7"
)

// PutReady uploads one buffer of size bytes as n objects, PREFIX_0 and so on, with c.Uploads concurrent requests. It is the baseline of a Writer: the
// requests are the same, but no data is copied and the checksum is computed once.
func PutReady(ctx context.Context, c Config, size, n int) error {
	if err := c.complete(); err != nil {
		return err
	}
	core, _, err := c.client()
	if err != nil {
		return err
	}
	data := make([]byte, size)
	ready := body{crc: crc32.Checksum(data, castagnoli)}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for range c.Uploads {
		all.Go(func() {
			for k := next.Add(1) - 1; k < int64(n) && ctx.Err() == nil; k = next.Add(1) - 1 {
				key := c.Prefix + "_" + strconv.FormatInt(k, 10)
				o := minio.PutObjectOptions{UserMetadata: map[string]string{crcHeader: ready.checksum()}, DisableContentSha256: true}
				if _, err := core.PutObject(ctx, c.Bucket, key, bytes.NewReader(data), int64(size), "", "", o); err != nil {
					cancel(fmt.Errorf("object %s: %w", key, words(err)))
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}
