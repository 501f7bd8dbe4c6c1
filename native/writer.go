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

// WriteNames are names for the files of one burst: PREFIX_I for its packet I.
type WriteNames struct {
	Prefix           string // at most 200 bytes
	PacketDataOffset int
}

// Write hands b to a writer by reference; the caller keeps its own, and the packets are
// read-only from now on. names: nil, or for a writer that makes a file of each packet.
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
