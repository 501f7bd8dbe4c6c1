package native

/*
#include "dq.h"
*/
import "C"

// Write is the account of a burst that was handed to a writer. It outlives the session.
type Write struct{ c *C.dq_write }

// WriteState is what became of a burst so far.
type WriteState struct {
	Done              bool // nothing more will change
	Completed, Failed int  // packets
	Bytes             uint64
}

// WriteNames is what one burst has of its own. At most 200 bytes each.
type WriteNames struct {
	Prefix           string // of a file per packet: PREFIX_I for its packet I; empty: the writer's
	Comment          string // of its packets in a pcapng
	PacketDataOffset int
}

// Write hands b to a writer by reference; the caller keeps its own, and the packets are
// read-only from now on. names: nil, or what the burst has of its own.
// ErrNoSpace while the writer's ring is full, ErrNotReady once it has finished. Any thread.
func (st Stage) Write(b Burst, names *WriteNames) (Write, error) {
	var w Write
	if names == nil {
		return w, status(C.dq_writer_write(st.c, b.c, nil, &w.c))
	}
	c := C.dq_write_names{packet_data_offset: C.uint32_t(names.PacketDataOffset)}
	if err := put(c.prefix[:], "prefix", names.Prefix); err != nil {
		return w, err
	}
	if err := put(c.comment[:], "comment", names.Comment); err != nil {
		return w, err
	}
	return w, status(C.dq_writer_write(st.c, b.c, &c, &w.c))
}

// State reads what became of the burst. Any thread, until Free.
func (w Write) State() WriteState {
	var c C.dq_write_state
	C.dq_write_read(w.c, &c)
	return WriteState{bool(c.done), int(c.completed), int(c.failed), uint64(c.bytes)}
}

// Error is the first failure in words, empty when there is none.
func (w Write) Error() string {
	return read(func(buf *C.char, size C.size_t) { C.dq_write_error(w.c, buf, size) })
}

// Free lets go of the account; the writing goes on. Any thread.
func (w Write) Free() { C.dq_write_free(w.c) }

// WriterError is a writer's first error in words, empty when there is none. Any thread.
func (st Stage) WriterError() string {
	return read(func(buf *C.char, size C.size_t) { C.dq_writer_error(st.c, buf, size) })
}

// WriterPaths lists the files that a writer writes, or wrote last, one for each of its
// folders that has some. Any thread.
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

// WriterFile is one of the files of a writer.
type WriterFile struct {
	Path                  string
	Bytes, Packets        uint64 // at its end; packets, or batches
	FirstNS, LastNS       int64  // receive times of the first and the last packet handed to it
	FirstBatch, LastBatch uint64 // of batches: their ids
	CRC32C                uint32
	Closed, Deleted       bool // until it is closed only the path is right
}

// WriterFiles lists the files in the order in which they were begun, but those of a file per
// packet or burst. Any thread.
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
