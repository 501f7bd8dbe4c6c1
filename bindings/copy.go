package bindings

import "github.com/daqiri/daqiri-run/runtime/session"

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
