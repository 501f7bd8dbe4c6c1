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

// complete completes the multipart upload of an object.
func (w *Writer) complete(o *object) error {
	slices.SortFunc(o.done, func(a, b minio.CompletePart) int { return cmp.Compare(a.PartNumber, b.PartNumber) })
	again := false
	return w.try(0, func(ctx context.Context) error {
		_, err := w.core.CompleteMultipartUpload(ctx, w.c.Bucket, o.key, o.upload, o.done, minio.PutObjectOptions{})
		if again && minio.ToErrorResponse(err).Code == "NoSuchUpload" && w.isThere(ctx, o) {
			return nil // the response to the first attempt was lost
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

// Check verifies the bucket: it must exist, accept the credentials and, unless overwrite is set, have no objects with the writer's prefix. It blocks
// for at most 15 s.
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
		return nil // credentials without permission to list may have permission to write
	case found.Err != nil:
		return fmt.Errorf("bucket %s at %s: %w", w.c.Bucket, w.core.EndpointURL(), w.stop(found.Err))
	case !overwrite:
		return fmt.Errorf("bucket %s has objects of this name already: %s; hint: choose another prefix, or say overwrite = true", w.c.Bucket, found.Key)
	}
	return nil
}
