package native

/*
#include "dq.h"
*/
import "C"

import (
	"slices"
	"strings"
	"sync"
)

// Format is a file format of writers: a row of native/writer/format.c.
type Format struct {
	kind       int      // dq_writer_kind
	Kind       string   // of its writers in scripts and manifests
	Choice     string   // its name among the formats of its kind; empty: the only one
	Suffix     string   // of file names
	Options    []string // writer options besides the common ones
	Each       bool     // a file for each packet or burst
	Aggregates bool     // accepts aggregates only, and starts a file when their shape changes
}

// Takes reports whether writers of this format have the option.
func (f *Format) Takes(option string) bool { return slices.Contains(f.Options, option) }

// Formats returns all formats; the first of a kind is the default of its writers.
var Formats = sync.OnceValue(func() (list []Format) {
	for kind := 0; ; kind++ {
		f := C.dq_format_of(C.int(kind))
		if f == nil {
			return list
		}
		list = append(list, Format{
			kind: kind, Kind: C.GoString(f.kind), Choice: C.GoString(f.choice), Suffix: C.GoString(f.suffix),
			Options: strings.Fields(C.GoString(f.options)), Each: f.each != 0, Aggregates: bool(f.aggregates),
		})
	}
})

// WriteNames are settings for one burst. At most 200 bytes each.
type WriteNames struct {
	Prefix           string // of a file per packet: PREFIX_I for packet I; empty: the writer's
	Comment          string // of its packets in a pcapng file
	PacketDataOffset int
}

// Write passes b to a writer by reference; the caller keeps its own, and the packets become read-only. names: nil, or settings
// for the burst. ErrNoSpace if the writer's ring is full, ErrNotReady once it has finished. Any thread.
func (st Stage) Write(b Burst, names *WriteNames) (Op, error) {
	var op Op
	if names == nil {
		return op, status(C.dq_writer_write(st.c, b.c, nil, &op.c))
	}
	c := C.dq_write_names{packet_data_offset: C.uint32_t(names.PacketDataOffset)}
	if err := put(c.prefix[:], "prefix", names.Prefix); err != nil {
		return op, err
	}
	if err := put(c.comment[:], "comment", names.Comment); err != nil {
		return op, err
	}
	return op, status(C.dq_writer_write(st.c, b.c, &c, &op.c))
}

// WriterError returns a writer's first error as text, or "". Any thread.
func (st Stage) WriterError() string {
	return read(func(buf *C.char, size C.size_t) { C.dq_writer_error(st.c, buf, size) })
}

// WriterPaths returns the files that a writer is writing, or wrote last, one for each of its folders that has some. Any thread.
func (st Stage) WriterPaths() []string {
	var paths []string
	for dir, more := 0, true; more; dir++ {
		path := read(func(buf *C.char, size C.size_t) {
			more = bool(C.dq_writer_path(st.c, C.uint32_t(dir), buf, size))
		})
		if more && path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

// WriterFile is one of a writer's files.
type WriterFile struct {
	Path                  string
	Bytes, Packets        uint64 // at its end; packets, or aggregates
	FirstNS, LastNS       int64  // receive times of its first and last packet
	FirstBatch, LastBatch uint64 // ids of its first and last aggregate
	CRC32C                uint32
	Closed, Deleted       bool // until it is closed only the path is valid
}

// WriterFiles returns the files in the order of their creation, except those of a file per packet or burst. Any thread.
func (st Stage) WriterFiles() []WriterFile {
	var list []WriterFile
	var f C.dq_writer_file
	for C.dq_writer_file_read(st.c, C.uint32_t(len(list)), &f) {
		list = append(list, WriterFile{
			Path: C.GoString(&f.path[0]), Bytes: uint64(f.bytes), Packets: uint64(f.packets),
			FirstNS: int64(f.first_ns), LastNS: int64(f.last_ns),
			FirstBatch: uint64(f.first_batch), LastBatch: uint64(f.last_batch),
			CRC32C: uint32(f.crc32c), Closed: bool(f.closed), Deleted: bool(f.deleted),
		})
	}
	return list
}
