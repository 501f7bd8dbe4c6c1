package native

/*
#cgo CFLAGS: -std=c11 -O3 -D_GNU_SOURCE -Wall -Wextra -I${SRCDIR}
#cgo LDFLAGS: -lpthread -ldl -lm
#include <stdlib.h>
#include "dq.h"

// The calls of the packet path: they keep no pointer and never call back.
#cgo noescape dq_wait
#cgo nocallback dq_wait
#cgo nocallback dq_waiter_wake
#cgo noescape dq_burst_view
#cgo nocallback dq_burst_view
#cgo nocallback dq_burst_ref
#cgo nocallback dq_burst_columns
#cgo nocallback dq_burst_unref
#cgo noescape dq_burst_peer
#cgo nocallback dq_burst_peer
#cgo nocallback dq_burst_set_len
#cgo nocallback dq_burst_truncate
#cgo nocallback dq_burst_free_packet
#cgo nocallback dq_burst_free_segment
#cgo noescape dq_burst_compact
#cgo nocallback dq_burst_compact
#cgo noescape dq_burst_pick
#cgo nocallback dq_burst_pick
#cgo noescape dq_burst_column
#cgo nocallback dq_burst_column
#cgo noescape dq_column_differing_bits
#cgo nocallback dq_column_differing_bits
#cgo noescape dq_column_narrow
#cgo nocallback dq_column_narrow
#cgo noescape dq_burst_select
#cgo nocallback dq_burst_select
#cgo nocallback dq_burst_count
#cgo noescape dq_burst_eval
#cgo nocallback dq_burst_eval
#cgo noescape dq_burst_set
#cgo nocallback dq_burst_set
#cgo nocallback dq_burst_redirect
#cgo noescape dq_tx_alloc
#cgo nocallback dq_tx_alloc
#cgo nocallback dq_tx_send
#cgo noescape dq_writer_write
#cgo nocallback dq_writer_write
#cgo noescape dq_op_read
#cgo nocallback dq_op_read
#cgo nocallback dq_template_fill
#cgo nocallback dq_now
#cgo nocallback dq_step
*/
import "C"

import (
	"strings"
	"unsafe"
)

// put copies text into a C array with its terminating zero; what names the value in errors.
func put(dst []C.char, what, text string) error {
	if len(text) >= len(dst) || strings.IndexByte(text, 0) >= 0 {
		return tooLong(what, text, len(dst)-1)
	}
	for i := 0; i < len(text); i++ {
		dst[i] = C.char(text[i])
	}
	dst[len(text)] = 0
	return nil
}

// text reads a C array up to its terminating zero.
func text(src []C.char) string {
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(src))), len(src))
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// read calls fill with a buffer and returns the text that it wrote.
func read(fill func(buf *C.char, size C.size_t)) string {
	var buf [1024]C.char
	fill(&buf[0], C.size_t(len(buf)))
	return text(buf[:])
}

// cText is a string in C memory.
type cText struct{ c *C.char }

func cString(s string) cText { return cText{C.CString(s)} }

func (t cText) free() { C.free(unsafe.Pointer(t.c)) }

func flag(on bool) C.int32_t {
	if on {
		return 1
	}
	return 0
}

// first returns the address of a slice's first element, or nil.
func first[T any](s []T) *T { return unsafe.SliceData(s) }
