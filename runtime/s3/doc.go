// Package s3 uploads packets as objects of an S3 store. It is independent of sessions: a Writer takes packet bytes and reports their outcome to an
// Account.
//
// Bytes are copied once, into staging memory that is allocated with the writer: a burst can be released as soon as it is copied, so a slow store
// never holds packet buffers, and failed requests can be repeated from the staging memory.
package s3
