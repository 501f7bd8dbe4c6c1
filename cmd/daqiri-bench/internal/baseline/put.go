package baseline

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/daqiri/daqiri-run/runtime/s3"
)

// Store is the destination of objects.
type Store = s3.Config

// RunPut uploads n objects of size bytes, PREFIX_0 and so on, from one buffer by the S3 writer's client alone; a packet is an object.
// The requests are those of a writer, but no data is copied and the checksum is computed once.
func RunPut(conf Store, size, n int) (Figures, error) {
	core, _, err := conf.Client()
	if err != nil {
		return Figures{}, err
	}
	began, before := time.Now(), cpuTime()
	err = putAll(core, conf, make([]byte, size), n)
	return Figures{Packets: uint64(n), Bytes: uint64(n) * uint64(size), Seconds: time.Since(began).Seconds(),
		CPUSeconds: (cpuTime() - before).Seconds()}, err
}

// putAll uploads data as n objects with conf.Uploads concurrent requests, and returns the first error.
func putAll(core *minio.Core, conf Store, data []byte, n int) error {
	sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
	meta := map[string]string{"x-amz-checksum-crc32c": base64.StdEncoding.EncodeToString(sum)}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for range conf.Uploads {
		all.Go(func() {
			for k := next.Add(1) - 1; k < int64(n) && ctx.Err() == nil; k = next.Add(1) - 1 {
				key := fmt.Sprintf("%s_%d", conf.Prefix, k)
				o := minio.PutObjectOptions{UserMetadata: meta, DisableContentSha256: true}
				if _, err := core.PutObject(ctx, conf.Bucket, key, bytes.NewReader(data), int64(len(data)), "", "", o); err != nil {
					cancel(fmt.Errorf("object %s: %w", key, err))
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// cpuTime returns the CPU time of the process; 0 where the kernel does not report it.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
