// Package s3 uploads packets as objects of an S3 store. It knows nothing of sessions: bytes come in through a Writer,
// and an Account hears what became of them.
//
// Bytes are copied once, into staging memory that is made with the writer: a burst is let go as soon as it is copied,
// so that a slow store holds no packet buffers, and a failed request can be made again. Requests read from there.
package s3
