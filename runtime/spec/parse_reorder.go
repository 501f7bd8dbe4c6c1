package spec

import (
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

func (p *parser) reorder(v value) *Reorder {
	o := p.object(v)
	r := &Reorder{Source: o.Source}
	r.Name = o.name("name")
	r.ReorderType = o.choice("reorder_type")
	r.ReorderEngine = o.choice("reorder_engine")
	r.CyclicSequence = o.boolean("cyclic_sequence")
	r.MissingAction = o.choice("missing_action")
	r.MemoryRegion = o.name("memory_region")
	r.PayloadByteOffset = integer[int](o, "payload_byte_offset")
	r.PayloadSegment = integer[int](o, "payload_segment")
	if r.ReorderEngine != "hw" {
		o.waive("packet_size")
		o.effectless("packet_size")
	} else if !r.CyclicSequence {
		p.errorf(o.Key("cyclic_sequence"), "must be true with reorder_engine: hw")
	}
	r.PacketSize = integer[int](o, "packet_size")
	for _, id := range o.list("flow_ids") {
		if i, ok := p.integer(id); ok {
			r.FlowIDs = append(r.FlowIDs, uint32(i))
			r.flowAt = append(r.flowAt, id.Source)
		}
	}
	if o.empty("flow_ids") {
		p.errorf(o.Key("flow_ids"), "at least one flow id is needed")
	}
	if d := o.child("data_types"); d.ok() {
		r.DataTypes = p.dataTypes(d)
	}
	if m := o.child("method"); m.ok() {
		p.method(m, r)
	}
	o.end()
	return r
}

func (p *parser) dataTypes(o *object) *DataTypes {
	d := &DataTypes{
		InputType:  o.alias("input_type", "input"),
		OutputType: o.alias("output_type", "output"),
		Endianness: o.alias("endianness", "input_endianness"),
	}
	o.end()
	return d
}

// alias reads a choice from its key or from an alias.
func (o *object) alias(key, old string) string {
	if !o.Has(old) {
		return o.choice(key)
	}
	if o.Has(key) {
		o.p.errorf(o.Key(old), "stands beside %s, of which it is an alias: keep one of them", key)
	}
	return o.choice(old)
}

func (p *parser) method(o *object, r *Reorder) {
	byBatch, byCount := o.child(schema.MethodSeqBatchNumber), o.child(schema.MethodSeqPacketsPerBatch)
	switch {
	case o.Has(schema.MethodSeqBatchNumber) == o.Has(schema.MethodSeqPacketsPerBatch):
		p.errorf(o.Source, "exactly one of %s and %s is needed", schema.MethodSeqBatchNumber, schema.MethodSeqPacketsPerBatch)
	case byBatch.ok():
		r.Method = schema.MethodSeqBatchNumber
		r.SequenceNumber = p.bitField(byBatch, "sequence_number")
		batch := p.bitField(byBatch, "batch_number")
		r.BatchNumber = &batch
		p.packetsPerBatch(byBatch, r)
		byBatch.end()
	case byCount.ok():
		r.Method = schema.MethodSeqPacketsPerBatch
		r.SequenceNumber = p.bitField(byCount, "sequence_number")
		r.PacketsPerBatch = integer[int64](byCount, "packets_per_batch")
		p.sequenceRange(byCount, r)
		byCount.end()
	}
	o.end()
}

func (p *parser) bitField(o *object, key string) BitField {
	f := o.child(key)
	if !f.ok() {
		return BitField{}
	}
	defer f.end()
	return BitField{
		Source:    f.Source,
		BitOffset: integer[int](f, "bit_offset"),
		BitWidth:  integer[int](f, "bit_width"),
	}
}

// packetsPerBatch derives the size of a batch: the sequence number covers 2^batch_width batches.
func (p *parser) packetsPerBatch(o *object, r *Reorder) {
	seq, batch := r.SequenceNumber.BitWidth, r.BatchNumber.BitWidth
	if seq == 0 || batch == 0 {
		return // already reported
	}
	switch bits := seq - batch; {
	case bits < 0:
		p.errorf(o.Source, "a batch number of %d bits is wider than the sequence number of %d bits", batch, seq)
	case 1<<min(batch, 62) < LeastBatches:
		p.errorf(o.Source, "a batch number must tell at least %d batches apart, not %d: use a wider one", LeastBatches, 1<<batch)
	case bits > 31:
		p.errorf(o.Source, "2^%d packets a batch are too many", bits)
	default:
		r.PacketsPerBatch = 1 << bits
	}
}

// LeastBatches is the minimum number of batches that the numbers of a reorder stage must distinguish. With fewer, an open batch, a late one and one
// that is lost completely could not be distinguished.
const LeastBatches = 4

// sequenceRange checks that a sequence number distinguishes enough batches.
func (p *parser) sequenceRange(o *object, r *Reorder) {
	width := r.SequenceNumber.BitWidth
	if width == 0 || r.PacketsPerBatch == 0 || width > 63 {
		return
	}
	if most := uint64(1) << width / LeastBatches; uint64(r.PacketsPerBatch) > most {
		p.errorf(o.Key("packets_per_batch"), "a sequence number of %d bits must tell at least %d batches apart, not %d: at most %d packets a batch are possible",
			width, LeastBatches, uint64(1)<<width/uint64(r.PacketsPerBatch), most)
	}
}

// slotBytes returns the maximum number of bytes that one packet of a source buffer occupies in an output buffer.
func (r *Reorder) slotBytes(sourceBuf int) int64 {
	n := int64(sourceBuf - r.PayloadByteOffset)
	if r.ReorderEngine == "hw" && r.PacketSize > 0 {
		n = int64(r.PacketSize)
	}
	if r.DataTypes == nil {
		return n
	}
	in, out := schema.ElementBits[r.DataTypes.InputType], schema.ElementBits[r.DataTypes.OutputType]
	if in == 0 || out == 0 {
		return n
	}
	return n * 8 / int64(in) * int64(out) / 8
}
