package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/minio/minio-go/v7"
)

// complete makes an object of its parts.
func (w *Writer) complete(o *object) error {
	slices.SortFunc(o.done, func(a, b minio.CompletePart) int { return cmp.Compare(a.PartNumber, b.PartNumber) })
	again := false
	return w.try(0, func(ctx context.Context) error {
		_, err := w.core.CompleteMultipartUpload(ctx, w.c.Bucket, o.key, o.upload, o.done, minio.PutObjectOptions{})
		if again && minio.ToErrorResponse(err).Code == "NoSuchUpload" && w.isThere(ctx, o) {
			return nil // the answer to the first attempt was lost
		}
		again = true
		return err
	})
}

// isThere reports whether the store has an object of this name and length.
func (w *Writer) isThere(ctx context.Context, o *object) bool {
	info, err := w.core.Client.StatObject(ctx, w.c.Bucket, o.key, minio.StatObjectOptions{})
	return err == nil && info.Size == o.bytes
}

// Check asks the store for the bucket: it must be there, take the credentials, and have no objects of the writer's
// names, unless overwrite says that they don't matter. Blocks, for 15 s at most.
func (w *Writer) Check(overwrite bool) error {
	keys, err := w.keys.GetWithContext(w.core.CredContext())
	if err != nil || keys.AccessKeyID == "" {
		return errors.New("no credentials were found; hint: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE")
	}
	ctx, cancel := context.WithTimeout(w.ctx, 15*time.Second)
	defer cancel()
	first := minio.ListObjectsOptions{Prefix: w.c.Prefix + "_", MaxKeys: 1, Recursive: true}
	found, any := <-w.core.Client.ListObjects(ctx, w.c.Bucket, first)
	switch {
	case !any, minio.ToErrorResponse(found.Err).Code == "AccessDenied":
		return nil // who may not list may be allowed to write all the same
	case found.Err != nil:
		return fmt.Errorf("bucket %s at %s: %w", w.c.Bucket, w.core.EndpointURL(), w.stop(found.Err))
	case !overwrite:
		return fmt.Errorf("bucket %s has objects of this name already: %s; hint: choose another prefix, or say overwrite = true", w.c.Bucket, found.Key)
	}
	return nil
}
