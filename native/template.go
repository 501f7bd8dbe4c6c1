package native

/*
#include "dq.h"
*/
import "C"

// VaryKind is the kind of variation of a field from packet to packet.
type VaryKind int32

// Kinds of variation.
const (
	VaryInc    VaryKind = C.DQ_VARY_INC    // start, start + step, ..., wraps from max to start; without a max from the largest value to 0
	VaryRandom VaryKind = C.DQ_VARY_RANDOM // random in start..max
	VaryToggle VaryKind = C.DQ_VARY_TOGGLE // alternates between start and start with the bits of step inverted
)

// Vary is a field of a template that varies from packet to packet.
type Vary struct {
	Field            Field
	Kind             VaryKind
	Start, Step, Max uint64
	Every            uint64 // consecutive packets with the same value; 0: 1
}

// Template is a packet to send many times. The zero Template is not a template.
type Template struct{ c *C.dq_template }

// NewTemplate creates a template; with checksums, those of IPv4, UDP and TCP are computed for each packet sent. The caller frees
// it; queues that send it have their own references.
func NewTemplate(packet []byte, vary []Vary, checksums bool, seed int64) (Template, error) {
	c := make([]C.dq_vary, len(vary))
	for i, v := range vary {
		c[i] = C.dq_vary{
			field: *v.Field.ptr(),
			kind:  C.int32_t(v.Kind),
			start: C.uint64_t(v.Start),
			step:  C.uint64_t(v.Step),
			max:   C.uint64_t(v.Max),
			every: C.uint64_t(v.Every),
		}
	}
	var t Template
	var d C.dq_diag
	rc := C.dq_template_new((*C.uint8_t)(first(packet)), C.uint32_t(len(packet)), first(c), C.uint32_t(len(c)),
		C.int(flag(checksums)), C.uint64_t(seed), &t.c, &d)
	return t, result("template", rc, &d)
}

// Free drops the caller's reference.
func (t Template) Free() { C.dq_template_unref(t.c) }

// Prepend puts the template's packet, as headers, in front of each packet of b, and sets lengths and checksums.
func (t Template) Prepend(b Burst) error {
	var d C.dq_diag
	return result("template", C.dq_template_prepend(t.c, b.c, &d), &d)
}

// Fill writes the packets of b, lengths too. Only for single-segment bursts.
func (t Template) Fill(b Burst) error { return status(C.dq_template_fill(t.c, b.c)) }
