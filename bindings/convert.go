package bindings

import "github.com/daqiri/daqiri-run/runtime/session"

// sessionConvert is s:convert{name, memory_region, data_types, format, at, payload_byte_offset, policy}: a stage that makes
// packets whose payloads have elements of another type.
func sessionConvert(c *call) int {
	o := selfSession(c)
	opts := c.options(1)
	opts.need("memory_region", "data_types")
	at := opts.payloadPlace(opts.format())
	st, err := o.s.Convert(opts.str("name", ""), session.ConvertOptions{
		MemoryRegion:      opts.str("memory_region", ""),
		Data:              *opts.dataTypes("data_types"),
		PayloadByteOffset: at.offset,
		AtPayload:         at.payload,
		BehindItems:       at.items,
		Policy:            opts.policy(session.Drop),
	})
	return c.pushStage(st, o, err)
}

// payloadPlace is where payloads begin: so many bytes from the packet's start, from the innermost payload's, or from
// behind its items.
type payloadPlace struct {
	offset         int
	payload, items bool
}

// payloadPlace reads it; a format's payload is behind its header, unless the options say otherwise.
func (o *options) payloadPlace(f *format) payloadPlace {
	if f != nil && !o.has("at") && !o.has("payload_byte_offset") && (f.items || f.header >= 0) {
		return payloadPlace{offset: f.header, payload: true, items: f.items}
	}
	return payloadPlace{offset: int(o.whole("payload_byte_offset", 0, 0, 1<<20)), payload: o.choice("at", "start", "payload") == "payload"}
}
