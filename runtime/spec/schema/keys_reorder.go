package schema

// Element types of payloads before and after conversion.
var (
	InputTypes  = []string{"int4", "int8", "int16", "int32"}
	OutputTypes = []string{"fp16", "bf16", "fp32", "fp64", "int32", "int16", "int8"}
)

// ElementBits maps an element type to its width.
var ElementBits = map[string]int{
	"int4": 4, "int8": 8, "int16": 16, "int32": 32, "fp16": 16, "bf16": 16, "fp32": 32, "fp64": 64,
}

var reorderSection = section("rx.reorder_configs[]", "Packets of some flows become aggregates: the payloads of one batch in one buffer, in order. `s:reorder` "+
	"does the same from a script.", []string{`
flows:
- {name: images, id: 101, match: {udp_dst: 4096}, action: {type: queue, id: 0}}
reorder_configs:
- name: images
  reorder_type: cpu
  reorder_engine: sw
  missing_action: drop
  memory_region: batches
  payload_byte_offset: 0
  payload_segment: 1
  flow_ids: [101]
  data_types: {input_type: int16, output_type: fp32, endianness: network}
  method:
    seq_packets_per_batch:
      sequence_number: {bit_offset: 336, bit_width: 32}
      packets_per_batch: 16
`, `
flow_isolation: true
queues:
- {name: data, id: 1, cpu_core: 1, batch_size: 256, memory_regions: [packets]}
flows:
- {name: images, id: 101, match: {udp_dst: 4096}, action: {type: queue, id: 1}}
reorder_configs:
- name: in_hardware
  reorder_type: cpu
  reorder_engine: hw
  cyclic_sequence: true
  packet_size: 1024
  memory_region: batches
  payload_byte_offset: 64
  flow_ids: [101]
  method:
    seq_batch_number:
      sequence_number: {bit_offset: 336, bit_width: 9}
      batch_number: {bit_offset: 352, bit_width: 2}
`},
	Key{Name: "name", Type: TypeFilled, Required: true, Words: "What scripts and the ledger call the stage: one of the interface each."},
	Key{Name: "reorder_type", Type: TypeChoice, Choices: []string{"gpu", "cpu"}, Required: true,
		Words: "Who moves the payloads: `cpu` in regions of kind " + JoinOr(KindsFor("cpu")) + ", `gpu` in those of kind " + JoinOr(KindsFor("gpu")) + ". With " +
			"`--memory host` both are on the CPU."},
	Key{Name: "reorder_engine", Type: TypeChoice, Choices: []string{"sw", "hw"}, Default: "sw", Words: "`hw`, the network card, which software emulates in this version: payloads go into a ring, " +
		"the region's buffers in their order. A buffer takes packets again once its aggregate is freed. [reordering](reordering.md#placement-by-a-network-card) has its conditions."},
	Key{Name: "cyclic_sequence", Type: TypeBoolean, Default: false, Words: "Whether the sequence number starts again at 0: after the last slot of the region with `reorder_engine: hw`, which needs it. `sw` follows it either way."},
	Key{Name: "missing_action", Type: TypeChoice, Choices: []string{"drop", "passthrough"}, Default: "passthrough",
		Words: "Of batches that are not complete: `passthrough` hands them over with gaps, `drop` drops them as `incomplete`."},
	Key{Name: "memory_region", Type: TypeFilled, Required: true, Words: "The region of the aggregates: a buffer holds a batch."},
	Key{Name: "payload_byte_offset", Type: TypeInteger, Lo: 0, Hi: maxU32, Required: true, Unit: "bytes",
		Words: "Where the payload begins, from the packet's first byte, with `payload_segment` from the segment's."},
	Key{Name: "payload_segment", Type: TypeInteger, Lo: 0, Hi: MaxSegments - 1, Default: 0,
		Words: "Which of the queue's `memory_regions`, from 0, has the payload. A queue that splits its packets needs it. Fields are read from the first one."},
	Key{Name: "packet_size", Type: TypeInteger, Lo: 1, Hi: MaxCount, Required: true, When: "with `reorder_engine: hw`", Unit: "bytes",
		Words: "The payload of a packet.", NoEffect: "has no effect with reorder_engine: sw"},
	Key{Name: "flow_ids", Type: TypeList, Items: TypeInteger, Lo: 0, Hi: maxU32, Required: true, Words: "The receive flows of the packets, at least one, each in one config."},
	Key{Name: "data_types", Type: TypeMap, Map: dataTypesSection, Words: "What the payload's elements become. Without it they stay as they are."},
	Key{Name: "method", Type: TypeMap, Map: methodSection, Required: true, Words: "How packets say where they belong."},
)

// older returns the row of a key's former name.
func older(name, key string, choices []string) Key {
	return Key{Name: name, Type: TypeChoice, Choices: choices, Words: "The older name of `" + key + "`."}
}

var dataTypesSection = section("data_types", "What the elements of payloads are and become, rounded to the nearest; fp16 ends in infinities, int8 at -128 and 127, int16 at -32768 and 32767.", []string{`
data_types: {input_type: int16, output_type: fp32, endianness: network}
`, `
data_types: {input: int16, output: fp32, input_endianness: network}
`},
	Key{Name: "input_type", Type: TypeChoice, Choices: InputTypes, Required: true, When: "without `input`", Words: "The elements that come; of int4 the high half of a byte first."},
	Key{Name: "output_type", Type: TypeChoice, Choices: OutputTypes, Required: true, When: "without `output`", Words: "The elements of the aggregate, in the host's byte order."},
	Key{Name: "endianness", Type: TypeChoice, Choices: byteOrders, Default: "host", Words: "The byte order of the elements that come."},
	older("input", "input_type", InputTypes), older("output", "output_type", OutputTypes), older("input_endianness", "endianness", byteOrders),
)

var byteOrders = []string{"host", "network"}

var methodSection = section("method", "How packets say where they belong; one of the keys is needed.", []string{`
method:
  seq_packets_per_batch:
    sequence_number: {bit_offset: 336, bit_width: 32}
    packets_per_batch: 16
`, `
method:
  seq_batch_number:
    sequence_number: {bit_offset: 336, bit_width: 10}
    batch_number: {bit_offset: 352, bit_width: 6}
`},
	Key{Name: MethodSeqBatchNumber, Type: TypeMap, Map: batchNumberSection, When: "without `seq_packets_per_batch`", Words: "By a sequence number and a batch number."},
	Key{Name: MethodSeqPacketsPerBatch, Type: TypeMap, Map: perBatchSection, When: "without `seq_batch_number`", Words: "By a sequence number, so many packets a batch."},
)

var sequenceKey = Key{Name: "sequence_number", Type: TypeMap, Map: bitFieldSection, Required: true, Words: "Where the sequence number is."}

var batchNumberSection = section("seq_batch_number", "The batch is a field of its own, the slot the sequence number's low bits: a batch has 2^(width of the "+
	"sequence number - width of the batch number) packets.", nil, sequenceKey,
	Key{Name: "batch_number", Type: TypeMap, Map: bitFieldSection, Required: true, Words: "Where the batch number is; it is not wider than the sequence number."},
)

var perBatchSection = section("seq_packets_per_batch", "The batch is the sequence number divided by `packets_per_batch`, the slot the rest.", nil, sequenceKey,
	Key{Name: "packets_per_batch", Type: TypeInteger, Lo: 1, Hi: MaxCount, Required: true, Unit: "packets", Words: "Packets of a batch, at most a quarter of what the sequence number counts."},
)

var bitFieldSection = section("sequence_number, batch_number", "A big-endian number in the packet.", nil,
	Key{Name: "bit_offset", Type: TypeInteger, Lo: 0, Hi: maxU16, Required: true, Unit: "bits", Words: "Where it begins, from the packet's first bit; the most significant bit of a byte is its first."},
	Key{Name: "bit_width", Type: TypeInteger, Lo: 1, Hi: 64, Required: true, Unit: "bits", Words: "How wide it is."},
)
