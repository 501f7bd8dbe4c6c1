package row

import (
	"strings"

	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// OneOf returns the type of an argument that accepts these words, in the notation of rows.
func OneOf(words []string) string { return `"` + strings.Join(words, `" | "`) + `"` }

// shapes are the named types of arguments and results: their rows have the plain type as result, or their keys.
var shapes = []struct{ name, doc string }{
	{"duration", `-> number | string
		Seconds, or text with a unit: ns, us, ms, s, min or h. A number as text has no unit and is refused.
		> daqiri.sleep("5ms")`},
	{"size", `-> integer | string
		Bytes, or text with a unit: B, KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024).
		> s:run{ bytes = "8KiB", seconds = 0.01 }`},
	{"rate", `-> number | string
		Bits per second, or text with a unit: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s.
		> tx:pace{ rate = "10Gbit/s" }`},
	{"instant", `-> time | u64 | string
		An absolute time, a u64 (ns since the epoch), or text that 'daqiri.time' reads.
		> s:at("now + 5ms", function() end)`},
	{"condition", `-> string
		A condition over the fields of a packet: 'daqiri-run help conditions'.
		> print(b:count("udp_dst == 53 and len > 60"))`},
	{"expression", `-> string
		An integer expression over the fields of a packet, in the grammar of conditions. The name of a field is an expression.
		> print(b:column("payload_len // 8"):max())`},
	{"threshold", `-> string
		A condition over figures, by their names in the ledger, and metrics, in the grammar of conditions.
		> s:threshold("b.rx.dropped == 0")`},
	{"field_name", `-> string
		A field that every packet may have ('daqiri-run help conditions'), or one of the format.
		> b:set{ udp_dst = 7149 }`},
	{"format_name", `-> string
		A format of the library, or one that the script declared.
		> print(b:count("seq > 1", "simple"))`},
	{"interface_name", `-> string
		The name of an interface in the configuration.
		> print(s:interface("a").mac)`},
	{"queue_name", `-> string
		The name of a queue in the configuration.
		> local q = s:rx_queue("b", s.config.interfaces[2].rx.queues[1].name)`},
	{"region_name", `-> string
		The name of a memory region in the configuration.
		> print(s:region("packets").free_bufs)`},
	{"stage_name", `-> string
		The name of a stage: the option 'name' of the call that made it, or that in the configuration.
		> print(s:stage("disk").kind)`},
	{"match", `-> table
		A selection of packets, as a flow's 'match' in a configuration: all given keys must match.
		> print(s:filter{ match = { udp_dst = 53 } }.kind)`},
	{"metric_name", `-> string
		A figure that the script sets.
		> s:metric("temperature", 21.5)`},
	{"policy", `-> "drop" | "wait"
		What happens while a consumer is too slow: packets are dropped and counted, or the queue waits.
		> q:on_burst(function(b) end, { policy = "drop" })`},
	{"failure", `-> nil
		An expected failure: nil, a status ("NOT_READY", "NO_SPACE_AVAILABLE", …) and a text. Misuse raises instead.
		> local mac, status, why = i:resolve("10.0.0.2")`},
	{"ledger", `-> table
		Figures by name, as 'daqiri-run help ledger' lists them: 'l.rx_port.rx.dropped', 'l.disk.written', 'l.seconds'. A misspelt name raises. If a name
		is a figure and also a prefix of figures, these are under 'NAME_by'.
		> print(s:stats().seconds)`},
	{"place", `. at "start" | "payload" = "start": from where bits count: the start of what the queue holds, or the innermost payload
		. bit_offset integer, bits: from the most significant one of the first byte; for little endian from the least significant one
		. bit_width integer, bits: 1 to 64
		. endianness "big" | "little" = "big": little also for bits of a little-endian word
		The place of a field without a name.
		> print(b:column{ at = "payload", bit_offset = 0, bit_width = 32 }[1])`},
	{"data_types", `. input_type? string | table: by default what the option 'format' of the call declares, with its scale, offset and levels; a type of samples, such as '"u12.lsb"', '"ci16be"' or '"o4"', or ` + schema.JoinOr(schema.InputTypes) + `. Of 's:convert' also '{ of = FIELD, [NUMBER] = TYPE, … }', where a number of the packet chooses the type
		. output_type ` + OneOf(schema.OutputTypes) + ` | string: or a short name, such as '"f32"', '"cf32"' or '"ci16"'; rounded to the nearest; fp16 ends in infinities, integers at their least and greatest values
		. endianness "host" | "network" = "host": byte order of the input, unless 'input_type' names it
		. scale number | string = 1: the value is (v + offset) * scale; '"full"' is 2^-(bits-1), of unsigned types 2^-bits. Of 's:convert' also a number over the packet's fields: '"gain / 4096"', '"2 ^ -shift"'
		. offset number = 0: is added to the element's number, before the scale
		. levels? number[] | "vlbi": the number of each code, from code 0, for types of up to 8 bits; '"vlbi"' has those of 2-bit VLBI data
		The types of payload elements before and after a conversion. 'daqiri-run doc samples' describes the names.
		> local types = { input_type = "u12.lsb", output_type = "f32", scale = "full" }
		> s:convert{ memory_region = "others", at = "payload", data_types = types }`},
	{"flow", `. name? string: in lists and in the ledger
		. match match: all given keys must match
		. action? table: as in a configuration: '{type = "queue", id = 0}'
		. actions? table[]: more than one, in order
		A flow: which packets go to which queues, with which actions.
		> local flow = { name = "dns", match = { udp_dst = 53 }, action = { type = "queue", id = 0 } }
		> s:interface("b"):add_flows("g", { flow })`},
}

// Rows shared by several functions.
const (
	OnBurstRows = `- fn fun(b: burst) | false: called with each burst; false removes the handler of that name, or all
		. name? string: of the handler, for a call that replaces its function or removes it
		. sample integer = 1, bursts: one of this many is passed to the function
		. policy policy = "wait": while the script is too slow
		`
	GetBurstRows = `. timeout_us? integer, us: how long it waits; by default without limit
		-> burst | failure
		`
	MulticastRows = `. groups string | table: '"239.2.0.64+3:7148"' (four groups, one port), or a list of texts or of '{ip, port}'
		. source? string: only packets from this address
		. queues? queue[]: all receive queues of the interface, which is also the default
		`
	FileRows = `. name? string: of its line in the ledger
		. dir? string = ".": the folder
		. dirs? string[]: up to 16 folders instead: each has its own file and thread
		. prefix? string: of the files' names; by default the name, or the kind, such as pcap or raw
		. rotate? size | table: the limit of one file: a size, or '{size, seconds, packets}', whichever is reached first
		. quota? size: of all files of this run
		. when_full "drop" | "delete_oldest" | "stop" = "drop": at the quota: packets are dropped and the run ends with exit code 6; or the oldest file is deleted; or
		  the run ends in order. Then the packets after the last one that fits are counted as 'enough'
		. manifest boolean = true: PREFIX.manifest.json describes the files
		. policy policy = "drop": while the disk is too slow
		`
	ReorderRows = `. name? string: of its line in the ledger
		. memory_region region_name: each aggregate is one buffer of it
		. sequence_number? field_name | place: a field that counts packets; by default the format's own, beside 'packets_per_batch', where it numbers the whole stream
		. batch_number? field_name | place: a field that counts batches
		. packets_per_batch? integer, packets: slots of a batch, beside 'sequence_number'
		. batch? expression: which batch
		. slot? expression: which slot
		. slots? integer: of a batch, beside 'batch' and 'slot'
		. wrap? integer: the number at which 'batch' continues at 0, from 4 on
		. fields? table<string, place>: further names for the texts
		. format? format | format_name: names for further fields; the payload is behind its header
		. offset? expression, bytes: within the slot: a multiple of 'packet_bytes'
		. packet_bytes? size: parts of a slot, beside 'offset'
		. extra? expression: kept for each slot ('b.extra')
		. source? expression | "peer": the source for which a packet is counted
		. at "start" | "payload" = "start": from where 'payload_byte_offset' counts
		. payload_byte_offset integer = 0, bytes: where the payload begins
		. segment integer = 1: of split packets, the one with the payload, from 1 ('payload_segment' of a configuration counts from 0)
		. slot_bytes? size: by default the longest payload so far
		. data_types? data_types: what elements are and become
		. flow_ids? integer[]: only packets of these flows; others continue in the pipe
		. window? integer, batches: that are open at a time, 1 to 64; by default up to 4
		. timeout_us integer = 0, us: time after its first packet at which a batch is handed over; 0: never
		. hand_over "eager" | "wait" = "eager": with "wait" queues that are ahead wait for the others, at most 'timeout_us'
		. fill "zero" | "keep" | integer = "zero": content of gaps: zeros, the earlier content of the buffer, or a byte. Where the format declares offset-binary samples, such as "o4", zeros are the code of 0, 0x88, unless samples are converted
		. missing_action "passthrough" | "drop" = "passthrough": handling of incomplete batches
		. policy policy = "drop": while no buffer is free
		`
	HeapsRows = `. name? string: of its line in the ledger
		. memory_region region_name: each heap is in one buffer of it, which is as long as a heap may be
		. format? format | format_name: names for further fields; the payload is behind its header, and items of its list are kept ('b.items')
		. fields? table<string, place>: further names for the texts
		. id? expression: which heap; by default 'heap_cnt' of the format
		. size? expression, bytes: length of the heap; by default 'heap_len' of the format
		. heap_bytes? size: length of every heap, instead of 'size'
		. offset? expression, bytes: where in the heap the payload belongs; by default 'payload_offset' of the format
		. at "start" | "payload" = "start": from where 'payload_byte_offset' counts
		. payload_byte_offset integer = 0, bytes: where the payload begins
		. segment integer = 1: of split packets, the one with the payload, from 1
		. window? integer, heaps: that are open at a time, 1 to 64; by default up to 4
		. timeout_us integer = 0, us: time after its first packet at which a heap is handed over; 0: never
		. fill "zero" | "keep" | integer = "zero": content of gaps: zeros, the earlier content of the buffer, or a byte. Where the format declares offset-binary samples, such as "o4", zeros are the code of 0, 0x88, unless samples are converted
		. missing_action "passthrough" | "drop" = "passthrough": handling of incomplete heaps
		. policy policy = "drop": while no buffer is free
		`
	TemplateRows = `. payload? string: the payload, filled up with zeros to 'payload_bytes'
		. payload_bytes? integer, bytes: length of the payload; by default that of 'payload'
		. bytes? string: the whole packet instead
		. eth_dst? string: an Ethernet address, or "auto": that of the owner of 'ipv4_dst' or 'ipv6_dst' ('i:resolve'; the session has to run, unless the kernel
		  knows). By default a multicast group's own address, else frames go to all hosts, with a warning on the engines xdp and dpdk unless
		  "ff:ff:ff:ff:ff:ff" is given
		. eth_src string = "auto": an Ethernet address; "auto" is the interface's, or 02:00:00:00:00:01
		. ethertype? integer: 0x600 to 0xffff: the payload begins behind it
		. vlan_id? integer: 0 to 4095: of a VLAN tag
		. vlan_pcp integer = 0: 0 to 7: of the VLAN tag
		. ipv4_src string = "192.0.2.1": an IPv4 address
		. ipv4_dst string = "192.0.2.2": an IPv4 address
		. ipv6_src string = "2001:db8::1": an IPv6 address; with one of the two the packet is IPv6
		. ipv6_dst string = "2001:db8::2": an IPv6 address
		. tos integer = 0: 0 to 255; of IPv6 the traffic class
		. ttl integer = 64: 0 to 255; of IPv6 the hop limit
		. udp_src integer = 4096: a port
		. udp_dst integer = 4096: a port
		. tcp_src integer = 4096: a port; with an option of TCP the packet is TCP
		. tcp_dst integer = 4096: a port
		. tcp_seq integer = 0: the sequence number
		. tcp_flags integer = 0x10: 0 to 255
		. vary? table: what changes from packet to packet: 'field = step', 'field = "toggle"' or 'field = {start, step, max, random, every, toggle}', which goes from 'max' on to 'start' and without 'max' wraps at the field's width. The list part
		  has places with these keys. 'every' packets have the same value, and 'toggle' has the bits that are turned by turns
		. format? format | format_name: its header begins the payload (of a format of the network layer: follows the Ethernet header), with the values that its fields have here, 'chan = 7', and 'payload' follows it; 'payload_bytes' counts it, too
		. [string]? any: a field of the format, with its value
		`
)
