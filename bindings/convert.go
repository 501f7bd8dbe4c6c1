package bindings

import (
	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/runtime/format"
	"github.com/daqiri/daqiri-run/runtime/session"
)

// sessionConvert implements s:convert{name, memory_region, data_types, format, at, payload_byte_offset, policy}: a stage that creates packets
// with the payload elements converted to another type.
func sessionConvert(c *call) int {
	o := selfSession(c)
	opts := c.options(1)
	opts.Need("memory_region", "data_types")
	f := opts.format()
	at := opts.payloadPlace(f, 0)
	st, err := o.s.Convert(opts.Str("name", ""), session.ConvertOptions{
		MemoryRegion:      opts.Str("memory_region", ""),
		Data:              *opts.dataTypes("data_types"),
		PayloadByteOffset: at.offset,
		AtPayload:         at.payload,
		Header:            at.header,
		Length:            at.length,
		Fields:            f.Fields(),
		Policy:            opts.Policy(session.Drop),
	})
	return c.pushStage(st, o, err)
}

// payloadPlace is the start of the payloads: a byte offset from the packet's start or from the innermost payload, plus the value of an
// expression.
type payloadPlace struct {
	offset         int
	payload        bool
	header, length string
}

// payloadPlace reads these options. A format's payload follows its header unless the options specify it, or packets are split: then the header is
// in segment 0.
func (o *options) payloadPlace(f *luaformat.Format, segment int) payloadPlace {
	data := f != nil && f.Declared != nil && f.Declared.Spec.Data != ""
	if f == nil || f.Declared == nil || segment > 0 || o.Has("at") || o.Has("payload_byte_offset") {
		at := payloadPlace{offset: int(o.Whole("payload_byte_offset", 0, 0, 1<<20)), payload: o.choice("at", "start", "payload") == "payload"}
		if data {
			at.header = format.DataHeaderBytes + " * 0" // undefined for packets without data
		}
		return at
	}
	if f.Declared.Spec.Layer != "payload" {
		o.Wrong("format", "%s is the header of another layer, behind which there are others: give at and payload_byte_offset", f.Name)
	}
	at := payloadPlace{payload: true, length: f.Declared.PayloadText()}
	n, fixed := f.Declared.Fixed()
	if at.offset = n; !fixed || data {
		at.offset, at.header = 0, format.DataHeaderBytes
	}
	return at
}

// sessionCopy implements s:copy{name, memory_region, data_types, format, at, payload_byte_offset, policy}: a stage that copies bursts to another
// region.
func sessionCopy(c *call) int {
	o := selfSession(c)
	opts := c.options(1)
	opts.Need("memory_region")
	at := opts.payloadPlace(opts.format(), 0)
	if opts.Has("data_types") && (at.header != "" || at.length != "") {
		opts.Wrong("format", "where its payload begins or ends, or whether it is data, depends on the packet, and a copy converts what is behind a header of one length: use s:convert")
	}
	copied := session.CopyOptions{
		MemoryRegion:      opts.Str("memory_region", ""),
		PayloadByteOffset: at.offset,
		AtPayload:         at.payload,
		Policy:            opts.Policy(session.Drop),
	}
	if opts.Has("data_types") {
		copied.Data = opts.dataTypes("data_types")
	}
	st, err := o.s.Copy(opts.Str("name", ""), copied)
	return c.pushStage(st, o, err)
}
