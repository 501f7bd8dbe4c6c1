package bindings

import (
	"fmt"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/bindings/value"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/stats"
	"github.com/daqiri/daqiri-run/runtime/suggest"
)

// sessionHandle is a session in Lua. Hot: hand-written metatable; its configuration is cold (config.go).
type sessionHandle struct {
	o      *RunningSession
	config lua.LValue
}

func (*sessionHandle) LuaType() string { return "session" }

var sessionType = &typeDef{
	name: "session",
	self: "s",
	doc: `a session
		Regions, interfaces, stages and workers that start, stop and are accounted for together: what 'daqiri.open' returns.`,
	fields: []field{
		{"config", `-> table
			The resolved configuration, read-only, under the names of the YAML. Lists are walked by 'for i, q in list() do', and 'print' shows JSON. The
			file's other sections are tables.
			> print(s.config.interfaces[1].name)`},
		{"name", `-> string: its configuration's file name, or 'default', 'text' or 'table'
			The session's name in logs and in the summary.
			> print(s.name)`},
	},
	get: func(rt *Runtime, _ *lua.LState, self any, key lua.LValue) lua.LValue {
		h := self.(*sessionHandle)
		switch key {
		case lua.LString("name"):
			return lua.LString(h.o.name)
		case lua.LString("config"):
			if h.config == nil {
				h.config = value.Configuration(rt.root, h.o.s.Config(), rt.integer)
			}
			return h.config
		}
		return nil
	},
	methods: []entry{
		{"add_region", sessionAddRegion, `- region table: with the keys of 'memory_regions[]' in a configuration
			- memory? array | table: memory of the application, as a value of 'bindings' of 'daqiri.open'
			-> true | failure
			Adds a memory region of kind 'host' or 'huge' to an open session, for queues that are added. Its memory is there when the call returns. Not in
			sessions with AF_XDP or engine rdma, which register their memory as a whole.
			> local region = { name = "spare", kind = "host", affinity = 0, num_bufs = 512, buf_size = 2048 }
			> assert(s:add_region(region))`},
		{"after", sessionAfter, `- seconds duration: from now on
			- fn fun(): called once
			-> timer
			Makes a timer that fires once.
			> s:after("5ms", function() print("5 ms are over") end)`},
		{"at", sessionAt, `- when instant: at which it fires; one that has passed is now
			- fn fun(): called once
			-> timer
			Makes a timer for an absolute time.
			> s:at("now + 5ms", function() s:stop "it is time" end)`},
		{"clock", sessionClock, `-> integer, ns: since the session's start
			-> string: realtime or virtual
			The session's clock.
			> local ns, clock = s:clock()`},
		{"close", sessionClose, `Ends the session in order and frees its memory. It belongs to the main chunk of the task that opened it.
			> s:close()`},
		{"convert", sessionConvert, `. name? string: of its line in the ledger
			. memory_region region_name: from which the new packets' buffers are taken
			. data_types data_types: what elements are and become
			. at "start" | "payload" = "start": from where 'payload_byte_offset' counts: the packet's start, or behind the innermost headers
			. payload_byte_offset integer = 0, bytes: where the payload begins
			. format? format | format_name: the payload begins behind its header, unless 'at' or 'payload_byte_offset' say otherwise
			. policy policy = "drop": while no buffer is free; with '"wait"' the region is the stage's alone
			-> stage
			Makes a stage that makes packets of the region whose payloads have elements of another type. What is in front of the payload stays; lengths and checksums
			of IP and UDP follow, those in an application's header don't. What came isn't touched. Packets are dropped without payload ('bad_place'), with a payload
			that is not a whole number of elements ('bad_payload') or doesn't fit the region's buffers ('too_long'). Packets whose type or scale is not known pass
			unchanged and count as 'raw'.
			> local to_float = s:convert{ memory_region = "others", at = "payload",
			>   data_types = { input_type = "int16", output_type = "fp32" } }
			> s:pipe(q, to_float, w)`},
		{"copy", sessionCopy, `. name? string: of its line in the ledger
			. memory_region region_name: from which the copies' buffers are taken, in the host's memory or a GPU's
			. data_types? data_types: what elements of payloads are and become; of sockets' queues and of aggregates
			. at "start" | "payload" = "start": from where 'payload_byte_offset' counts: the packet's start, or behind the innermost headers
			. payload_byte_offset integer = 0, bytes: where the payload begins that is converted
			. format? format | format_name: the payload begins behind its header, unless 'at' or 'payload_byte_offset' say otherwise
			. policy policy = "drop": while no buffer is free; with '"wait"' the region is the stage's alone
			-> stage
			Makes a stage that moves bursts into buffers of another region: into a GPU's memory, out of it, or within the host's. From one GPU's memory
			into another's they go where the driver gives it access. Where a GPU's memory takes part the GPU moves them, and what came is held until it has. Segments of a packet become one, and what is known of an aggregate goes with it. The copies come
			in order: stages behind it in a pipe, 'on_burst' and 'get_burst' of the stage take them.
			> local to_host = s:copy{ memory_region = "others" }
			> s:pipe(q, to_host, w)`},
		{"count", sessionCount, `. name? string: of its line in the ledger
			-> stage
			Makes a stage that counts.
			> s:pipe(q, s:count{ name = "seen" }, w)`},
		{"delete_region", sessionDeleteRegion, `- name region_name: of a region that no queue and no stage uses, else nil, '"RESOURCE_IN_USE"', text
			-> op | failure
			Deletes a memory region. The operation ends once all of its buffers are free, and gives the memory back.
			> local region = { name = "short_lived", kind = "host", affinity = 0, num_bufs = 512, buf_size = 2048 }
			> assert(s:add_region(region))
			> assert(s:delete_region("short_lived"):wait{ timeout = 5 })`},
		{"every", sessionEvery, `- seconds duration: its period, at least 1 µs
			- fn fun(): called each time
			-> timer
			Makes a timer that fires again and again; when it is late, once for all times missed.
			> s:every(1, function() print(s:stats().b.rx.packets) end)`},
		{"filter", sessionFilter, `. name? string: of its line in the ledger
			. where? condition: which packets pass
			. format? format | format_name: names for further fields in 'where'
			. match? match: all that is given has to hold
			. pcap? string: in libpcap's language
			-> stage
			Makes a stage that passes what matches. One of 'where', 'match' and 'pcap' is needed.
			> s:pipe(q, s:filter{ where = "udp_dst == 7148" }, w)`},
		{"gaps", sessionGaps, `. name? string: of its line in the ledger
			. format? format | format_name: names for further fields
			. counter? field_name | place: a field that counts the packets of a stream, of 4 to 64 bits; by default the format's sequence number
			. by? expression: the stream of a packet, each with an account of its own; by default that of the format's sequence number, else all are one stream
			. window? integer = 1024, packets: how far behind the highest number a packet may come; at most 65536 and a quarter of what the counter counts
			. jump? integer = 16777216, packets: how many packets in a row may be missing; what is further ahead is a restart; at most a quarter of what the counter counts
			-> stage
			Makes a stage that counts the packets that are missing in what passes it. The ledger has 'expected', 'unique' and 'missing' numbers, and packets that are 'reordered',
			'duplicate' or 'late'; for the first 256 streams as 'source.NAME.missing', too. A number counts as missing once it is 'window' numbers behind, or
			at the end. More is in the [cookbook](../cookbook.md).
			> s:pipe(q, s:gaps{ name = "radar", counter = "seq", format = "simple" }, w)
			> s:threshold("radar.missing == 0")`},
		{"heaps", sessionHeaps, row.HeapsRows + `-> stage
			Makes a stage that puts payloads of any length together to heaps: each goes to its byte offset in the heap of its 'id', in a buffer of the region.
			With the formats 'spead-64-48' and 'spead-64-40' 'id', 'size' and 'offset' are SPEAD's own, and no other option is needed. Heaps come out as a reorder
			stage's batches do ('on_burst', 'get_burst', pipes); 'b.batch_id' is the id, and what is counted, 'b.missing' and 'b.expected', are bytes. A heap is
			handed over when it is complete, when its time is up, or when a new one needs its place. More is in [reordering](../reordering.md).
			> local heaps = s:heaps{ name = "heaps", format = "spead-64-40",
		>   memory_region = "blocks", window = 2, timeout_us = 1000 }
			> s:pipe(q, heaps)
			> heaps:on_burst(function(h) print(h.batch_id, #h.data, h.missing) end)`},
		{"interface", sessionInterface, `- name interface_name: as in the configuration
			-> interface
			An interface.
			> print(s:interface("a").mac)`},
		{"interfaces", sessionInterfaces, `-> interface[]
			All interfaces.
			> for _, i in ipairs(s:interfaces()) do print(i.name) end`},
		{"log", sessionLog, `- level "debug" | "info" | "warn" | "error": how much it matters
			- text any: what happened
			- value? any: shown behind the text; of a table its keys are fields
			Writes to the log, as 'daqiri.log' does, with the session's name.
			> s:log("info", "lock lost", { antenna = 3 })`},
		{"measure", sessionMeasure, `. seconds duration: how long
			-> ledger: what happened meanwhile, with its 'seconds'
			Serves handlers for that time. The session has to run.
			> s:start()
			> print(s:measure{ seconds = "10ms" }.b.rx.packets)`},
		{"metric", sessionMetric, `- name metric_name: one that the ledger does not use
			- value number: any number
			Sets a figure for thresholds and the summary.
			> s:metric("temperature", 21.5)`},
		{"pipe", sessionPipe, `- source queue | stage | table: a receive queue, a reorder stage, or a list of these
			- ... stage | queue: stages in order; a writer or a transmit queue may be the last
			Sends every burst of the sources through the stages. A second pipe on a source is a tee. A transmit queue at the end holds the source while its ring
			is full.
			> s:pipe(q, s:filter{ where = "len > 100" }, w)`},
		{"region", sessionRegion, `- name region_name: as in the configuration
			-> table: name, kind, num_bufs, buf_size (bytes), free_bufs, stride (bytes), huge, group (buffers of a super-buffer; 1: there are none)
			What became of a memory region.
			> print(s:region("packets").free_bufs)`},
		{"reorder", sessionReorder, row.ReorderRows + `-> stage
			Makes a stage that puts the payloads of packets together to aggregates, in order: batches of slots, each batch in one buffer of the region. It has
			'on_burst' and 'get_burst', stands in pipes ('s:pipe(qs, blocks, writer)': the writer gets the aggregates), and may begin one. Where packets belong is
			given by 'sequence_number' and 'packets_per_batch'; by 'sequence_number' and 'batch_number', with the slot in the sequence number's low bits; or by
			the texts 'batch', 'slot' and the number 'slots'. A batch is handed over when it is complete, when its time is up, or when a packet comes that is
			'window' batches later. More is in [reordering](../reordering.md).
			> local blocks = s:reorder{ name = "heaps", memory_region = "blocks",
			>   packets_per_batch = 4, timeout_us = 1000,
			>   sequence_number = { at = "payload", bit_offset = 0, bit_width = 32 },
			>   at = "payload", payload_byte_offset = 8, slot_bytes = 92 }
			> s:pipe(q, blocks)
			> blocks:on_burst(function(a) print(a.batch_id, a.missing) end)`},
		{"report", sessionReport, `-> string[]: lines, which 'print' shows
			What is hardware, software or copy, and why.
			> print(s:report())`},
		{"rewrite", sessionRewrite, rewriteRows},
		{"run", sessionRun, `. seconds? duration: how long
			. packets? integer, packets: received, of a session without receive queues sent
			. bytes? size: received, of a session without receive queues sent
			. from? instant: when it starts; by default at once
			. to? instant: when it ends
			-> ledger: the summary: with reason, seconds, files, failed and error, too
			Starts the session, serves handlers and ends it in order. It ends at a limit, a stop, the end of all replayed captures and counted transmissions ("source exhausted"), or
			(virtual clock) when nothing more can happen.
			> local summary = s:run{ seconds = "10ms" }
			> print(summary.reason)`},
		{"rx_queue", sessionQueue(true), `- interface? interface | interface_name: or its name; by default the only one
			- queue? integer | queue_name: its id or name; by default the only one
			-> queue
			A receive queue.
			> local q = s:rx_queue("b", 0)`},
		{"rx_queues", sessionQueues(true), `- interface? interface | interface_name: or its name; by default the only one
			-> queue[]
			All receive queues of an interface.
			> print(#s:rx_queues("b"))`},
		{"sample", sessionSample, `. every integer, bursts: one of so many passes
			. name? string: of its line in the ledger
			-> stage
			Makes a stage that passes one burst of so many.
			> s:pipe(q, s:sample{ every = 10 }, w)`},
		{"share", sessionShare, `. name? string: of the stream, which readers attach to, and of its line in the ledger
			. path? string: of the socket; by default NAME in the folder daqiri-run of 'XDG_RUNTIME_DIR'
			. mode string = "0600": permissions of the socket, octal; others than the program's user attach only if it permits them
			. lend integer = 4, blocks: that a reader may have at a time, 1 to 64
			. readers integer = 4: attached at a time, 1 to 32
			. policy policy = "drop": for a reader that has as many blocks as it may: it misses the next one, or the queue waits for it
			. timeout duration = 1: of each wait, and at the end of the run of all waits together; a reader that releases nothing in this time is not waited for until it does
			. header? string | table: for readers; a table is written as JSON
			-> stage
			Makes a stage that lends aggregates to other programs without a copy, and passes them on. Python reads them with 'daqiri_run.attach'. Their memory region has
			'shared: true'. See [live data](../live.md).
			> s:pipe(blocks, s:share{ name = "live" })`},
		{"stage", sessionStage, `- name stage_name: of its line in the ledger
			-> stage
			A stage that was made before.
			> print(s:stage("disk").kind)`},
		{"start", sessionStart, `Starts the session: packets move from now on. It belongs to the main chunk of the task that opened it.
			> s:start()`},
		{"stats", sessionStats, `-> ledger
			The ledger so far: 'l.rx_port.rx.dropped', 'l.rx_port.rx.dropped_by.no_flow', 'l.rx_port.rx[0].packets', 'l.disk.written', 'l.seconds'. 'print' shows
			it line by line; of a table below it 'print' and the prompt leave out figures of 0.
			> print(s:stats())`},
		{"stop", sessionStop, `- reason? string: for the summary
			-> ledger | nil: the summary, in the main chunk
			In the main chunk ends the session in order; in a handler asks 's:run' to. What is queued is sent first, for 2 s at most, at its pace; then receiving
			ends, at one moment. What came before is delivered, what comes later is in no account, so 'rx_port.rx.dropped == 0' can hold for a stream that
			continues; what could not be sent is 'tx_port.tx.dropped', which the summary shows.
			> s:after("5ms", function() s:stop "enough" end)
			> s:run()`},
		{"threshold", sessionThreshold, `- condition threshold: over figures with the names of 's:stats()': '"rx_port.rx.dropped == 0"'
			. after duration = 0: from the start, before which a running session is not judged
			. abort boolean = false: a run that does not meet it ends at once
			Adds a condition that the run has to meet; if it does not, its exit code is that of a violated threshold. A figure that an interface or stage does not have is refused. At the start so is
			one of an object that is not there, if another is like it. Other names may get their values later ('s:metric'). 'errors' is how often the system
			refused or took away something, each a line of the summary: 'errors == 0' has to hold unless a threshold of the script's own names it.
			> s:threshold("b.rx.dropped == 0", { after = 1, abort = true })`},
		{"tx_queue", sessionQueue(false), `- interface? interface | interface_name: or its name; by default the only one
			- queue? integer | queue_name: its id or name; by default the only one
			-> queue
			A transmit queue.
			> local tx = s:tx_queue("a", 0)`},
		{"tx_queues", sessionQueues(false), `- interface? interface | interface_name: or its name; by default the only one
			-> queue[]
			All transmit queues of an interface.
			> print(#s:tx_queues("a"))`},
		{"write_blocks", sessionWrite("blocks"), row.FileRows + `. header? string | table: for each file, at most 3071 bytes; a table is written as JSON
			. present "packet" | "slot" = "packet": what the bitmap has a bit for
			-> stage
			Makes a writer of reordered bursts, into files PREFIX_INDEX.dqb, which a program maps as an array: [the format](../../native/writer/BLOCKS.md). Other
			bursts count as 'write_error'. See [writers](../writers.md).
			> s:pipe(blocks, s:write_blocks{ name = "heaps", dir = "captures", header = { antenna = 3 } })`},
		{"write_dada", sessionWrite("dada"), row.FileRows + `. samples? table: '{type?, rate?, frequency?}': the type of the samples, samples/s, and the center frequency in Hz
			. format? format | format_name: its constants are the defaults of 'samples'
			. header? table: further keys, such as NCHAN, NPOL, BW, TELESCOPE and SOURCE
			-> stage
			Makes a writer of PSRDADA files PREFIX_INDEX.dada: a header of 4096 bytes and the data of reordered bursts. A missing burst starts another file, whose OBS_OFFSET has
			its position. See [writers](../writers.md).
			> s:pipe(blocks, s:write_dada{ name = "psr", samples = { type = "ci8", rate = 1e6 },
			>   header = { NCHAN = 1, NPOL = 2, BW = 1, TELESCOPE = "test" } })`},
		{"write_guppi", sessionWrite("guppi"), row.FileRows + `. samples? table: '{type?, rate?, frequency?}': the type of the samples, samples/s, and the center frequency in Hz
			. format? format | format_name: its constants are the defaults of 'samples'
			. header? table: further keys, such as OBSNCHAN, NPOL, OBSBW, TELESCOP and SRC_NAME
			-> stage
			Makes a writer of GUPPI RAW files PREFIX_INDEX.raw: each reordered burst is a block, behind a header of 4096 bytes. See [writers](../writers.md).
			> s:pipe(blocks, s:write_guppi{ name = "seti", samples = { type = "ci8", rate = 1e6 },
			>   header = { OBSNCHAN = 64, NPOL = 4, OBSBW = 64 } })`},
		{"write_pcap", sessionWrite("pcap"), row.FileRows + `. format "pcap" | "pcapng" = "pcap": a pcapng also has interfaces, queues, flow ids (as comments) and, at each file's end, what the interfaces received and dropped
			. precision "ns" | "us" = "ns": of its times
			. snaplen integer = 0, bytes: kept of each packet; 0 is all
			. append boolean = false: continues behind what the file has, if its header is the same; a last record that is cut off goes
			. overwrite boolean = false: replaces a file that is there; else it stays, and this run's is PREFIX_INDEX
			. comment? string: of a pcapng, at most 3071 bytes
			-> stage
			Makes a writer of captures. The file is PREFIX.pcap. See [writers](../writers.md).
			> s:pipe(q, s:write_pcap{ name = "capture", dir = "captures", rotate = "1MB" })`},
		{"write_raw", sessionWrite("raw"), row.FileRows + `. per "file" | "packet" | "burst" = "file": all packets back to back in PREFIX.raw, as fast as the disk, or a file PREFIX_INDEX for each
			. packet_data_offset integer = 0, bytes: left out at the front of each packet
			. overwrite boolean = false: replaces files that are there, from PREFIX_0 on; else they stay, and indexes continue behind them
			-> stage
			Makes a writer of the packets' bytes and nothing else. See [writers](../writers.md).
			> s:pipe(q, s:write_raw{ name = "bytes", dirs = { "captures" }, packet_data_offset = 42 })`},
		{"write_s3", sessionWriteS3, `. bucket string: which has to be there
			. name? string: of its line in the ledger
			. prefix? string: objects are PREFIX_INDEX; by default the name, or 's3'
			. packets_per_object? integer, packets: after which an object ends; 1 where neither limit is given
			. bytes_per_object? size: an object ends before it is larger
			. packet_data_offset integer = 0, bytes: left out at the front of each packet
			. header? string | table: in objects of blocks; a table is written as JSON
			. endpoint? string: a URL; by default 'AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL', or Amazon's
			. region? string: by default 'AWS_REGION', 'AWS_DEFAULT_REGION', or us-east-1
			. path_style boolean = false: the bucket never becomes part of the host's name
			. access_key? string: with 'secret_key'; by default from the environment, the profile, or the machine's role
			. secret_key? string: printed nowhere
			. session_token? string: beside these two
			. profile? string: of '~/.aws/credentials'
			. checksum "crc32c" | "md5" = "crc32c": of each request; '"md5"' is for stores that don't know the other
			. overwrite boolean = false: objects of these names may be there already, and are replaced
			. staging size = "256MiB": memory for packets that are on their way; at least 16 MiB
			. uploads integer = 8: requests at a time, 1 to 256
			. attempts integer = 10: of each request, 1 to 1000
			. object_timeout duration = 300: of each request with all its attempts
			. end_timeout duration = 30: how long the end of the run waits for uploads
			. policy policy = "drop": when staging memory is full
			-> stage
			Makes a writer of the packets' bytes as objects of an S3 store, one each or, back to back, as many as the limits say. See
			[objects](../writers.md#objects).
			> local up = s:write_s3{ name = "up", bucket = "data", prefix = "night1",
			>   endpoint = "http://127.0.0.1:9000", bytes_per_object = "64MiB" }`},
		{"write_sigmf", sessionWrite("sigmf"), row.FileRows + `. samples? table: '{type?, rate?, frequency?}': the type of the samples in the packets, samples/s, and the center frequency in Hz
			. format? format | format_name: its constants are the defaults of 'samples'
			. packet_data_offset integer = 0, bytes: left out at the front of each packet; of reordered bursts all is written
			. header? table: further keys of the global object, such as 'core:description'
			. overwrite boolean = false: replaces a recording that is there; else it stays, and this run's is PREFIX_INDEX
			-> stage
			Makes a writer of SigMF recordings: PREFIX.sigmf-data has the samples, PREFIX.sigmf-meta the type, times and gaps. See [writers](../writers.md).
			> s:pipe(q, s:write_sigmf{ name = "radio", packet_data_offset = 42,
			>   samples = { type = "ci16le", rate = 250e6, frequency = 1.4e9 } })`},
		{"write_zarr", sessionWrite("zarr"), row.FileRows + `. samples? table: '{type?, rate?, frequency?}': the type of the samples, samples/s, and the center frequency in Hz; by default the elements are those of the data
			. format? format | format_name: its constants are the defaults of 'samples'
			. header? string | table: for each file and the array's attributes, at most 3071 bytes; a table is written as JSON
			. present "packet" | "slot" = "packet": what the bitmap has a bit for
			-> stage
			Makes a writer of a Zarr array (version 3) of reordered bursts: the folder PREFIX_INDEX.zarr, whose shards are the block files PREFIX_INDEX.dqb. See
			[writers](../writers.md#zarr-arrays).
			> s:pipe(blocks, s:write_zarr{ name = "heaps", dir = "captures", rotate = "1GB" })`},
	},
	meta: []entry{{name: "__tostring", fn: func(c *call) int {
		h, _ := row.Userdata[*sessionHandle](c.L.Get(1))
		return c.Push(lua.LString("session " + h.o.name))
	}}},
}

// selfSession returns self; it raises if the session is closed.
func selfSession(c *call) *RunningSession {
	h := receiver[*sessionHandle](c, "session")
	h.o.check(c)
	return h.o
}

func sessionInterface(c *call) int {
	o := selfSession(c)
	i, err := o.s.Interface(c.Str(1, "interface name"))
	c.Check(err)
	return c.Push(c.rt.newObject(&iface{i, o}))
}

func sessionInterfaces(c *call) int {
	o := selfSession(c)
	t := c.L.NewTable()
	for _, i := range o.s.Interfaces() {
		t.Append(c.rt.newObject(&iface{i, o}))
	}
	return c.Push(c.rt.shown(t))
}

// interfaceName reads an interface or its name; the default is the only interface.
func (c *call) interfaceName(n int, o *RunningSession) string {
	if i, ok := row.Userdata[*iface](c.Arg(n)); ok {
		return i.i.Name()
	}
	if list := o.s.Interfaces(); c.Arg(n) == lua.LNil && len(list) == 1 {
		return list[0].Name()
	}
	return c.Str(n, "interface or its name")
}

// sessionQueue implements s:rx_queue(interface, id | name) and s:tx_queue; the default of the second argument is the first queue.
func sessionQueue(rx bool) function {
	return func(c *call) int {
		o := selfSession(c)
		name := c.interfaceName(1, o)
		sel := ""
		switch v := c.Arg(2).(type) {
		case lua.LNumber:
			sel = strconv.FormatInt(c.Whole(2, "queue id", 0, 1<<16), 10)
		case lua.LString:
			sel = string(v)
		case *lua.LNilType:
			i, err := o.s.Interface(name)
			c.Check(err)
			list := i.TxQueues()
			if rx {
				list = i.RxQueues()
			}
			if len(list) != 1 {
				c.ArgError(2, "interface %s has %d such queues: name one, or give its id", name, len(list))
			}
			return c.Push(c.rt.newLasting(o.queue(list[0])))
		default:
			c.Wanted(2, "queue id or name")
		}
		find := o.s.TxQueue
		if rx {
			find = o.s.RxQueue
		}
		q, err := find(name, sel)
		c.Check(err)
		return c.Push(c.rt.newLasting(o.queue(q)))
	}
}

// sessionQueues implements s:rx_queues(interface) and s:tx_queues(interface): all queues.
func sessionQueues(rx bool) function {
	return func(c *call) int {
		o := selfSession(c)
		i, err := o.s.Interface(c.interfaceName(1, o))
		c.Check(err)
		list := i.TxQueues()
		if rx {
			list = i.RxQueues()
		}
		t := c.L.NewTable()
		for _, q := range list {
			t.Append(c.rt.newLasting(o.queue(q)))
		}
		return c.Push(c.rt.shown(t))
	}
}

// sessionAddRegion implements s:add_region(region, memory).
func sessionAddRegion(c *call) int {
	o := selfSession(c)
	c.AtMost(2)
	v, err := value.Of(c.Table(1, "region"), 0)
	c.Check(err)
	conf, err := spec.ParseRegion(v)
	if err != nil {
		c.ArgError(1, "%v", inWords(err))
	}
	if _, err := o.s.AddRegion(conf, c.memory(2, conf.Name)); err != nil {
		return c.refuse(err)
	}
	return c.Push(lua.LTrue)
}

// sessionDeleteRegion implements s:delete_region(name): the operation of the deletion.
func sessionDeleteRegion(c *call) int {
	op, err := selfSession(c).s.DeleteRegion(c.Str(1, "region name"))
	if err != nil {
		return c.refuse(err)
	}
	return c.Push(c.rt.newOp(op))
}

// sessionRegion implements s:region(name): a table with the region's actual properties.
func sessionRegion(c *call) int {
	o := selfSession(c)
	r, err := o.s.Region(c.Str(1, "region name"))
	c.Check(err)
	info, err := r.Info()
	c.Check(err)
	t := c.L.NewTable()
	t.RawSetString("name", lua.LString(r.Name()))
	t.RawSetString("kind", lua.LString(r.Kind()))
	for name, v := range map[string]int{"num_bufs": info.NumBufs, "buf_size": info.BufSize, "free_bufs": info.FreeBufs,
		"stride": info.Stride, "group": info.Group} {
		t.RawSetString(name, lua.LNumber(v))
	}
	t.RawSetString("huge", lua.LBool(info.Huge))
	value.Strict(c.rt.root, t, func(_ *lua.LState, key string) string {
		return row.Unknown("field", key, []string{"buf_size", "free_bufs", "group", "huge", "kind", "name", "num_bufs", "stride"}) + " of region"
	})
	return c.Push(t)
}

// sessionClock implements s:clock(): ns since the session's start, and the name of the clock.
func sessionClock(c *call) int {
	o := selfSession(c)
	name := "realtime"
	if o.s.Virtual() {
		name = "virtual"
	}
	c.L.Push(lua.LNumber(o.s.Now() - o.s.StartTime()))
	c.L.Push(lua.LString(name))
	return 2
}

func sessionReport(c *call) int {
	return c.Push(c.rt.shown(value.List(c.rt.root, selfSession(c).s.Report())))
}

func sessionLog(c *call) int {
	c.log(map[string]any{"session": selfSession(c).name})
	return 0
}

func sessionMetric(c *call) int {
	o := selfSession(c)
	name, v := c.Str(1, "metric name"), c.Number(2, "number")
	if of, _, dotted := strings.Cut(name, "."); dotted && o.accounts(of) {
		c.ArgError(1, "the ledger has the figures of %s: choose a name that does not begin with it", of)
	}
	c.Check(o.s.Metrics().Set(name, v))
	return 0
}

// accounts reports whether the ledger has figures with that first name.
func (o *RunningSession) accounts(name string) bool {
	if name == "process" {
		return true
	}
	_, noInterface := o.s.Interface(name)
	_, noStage := o.s.Stage(name)
	return noInterface == nil || noStage == nil
}

// sessionThreshold implements s:threshold(expr, {after, abort}).
func sessionThreshold(c *call) int {
	o := selfSession(c)
	opts := c.options(2)
	after, _ := opts.Seconds("after")
	t := stats.Threshold{Expr: c.Str(1, "condition"), After: float64(after) / 1e9, Abort: opts.Bool("abort", false)}
	err := o.misnamed(c.rt, t)
	if err == nil {
		err = o.s.Thresholds().Add(t)
	}
	if err != nil {
		c.ArgError(1, "%v", err)
	}
	return 0
}

// misnamed returns an error for figures that an existing object will never have, so that the error is reported before a long run. Unknown first
// names are accepted: stages and metrics may add them later.
func (o *RunningSession) misnamed(rt *Runtime, t stats.Threshold) error {
	var alone stats.Thresholds
	if err := alone.Add(t); err != nil {
		return err
	}
	for _, r := range alone.Check(o.Ledger()) {
		for _, missing := range r.Missing { // each text begins with the name
			name, _, _ := strings.Cut(missing, " ")
			if of, _, dotted := strings.Cut(name, "."); dotted && o.accounts(of) && !stats.OfSome(name) {
				return fmt.Errorf("threshold %q: %s", t.Expr, missing)
			}
		}
	}
	if o.Started() {
		return o.stray(rt, &alone)
	}
	return nil
}

// stray returns an error for thresholds that can't be met, at the start or when they are added: names that the ledger lacks but that resemble one
// of its names. Metrics get values during the run; for an absent name that may be a metric it logs a warning.
func (o *RunningSession) stray(rt *Runtime, thresholds *stats.Thresholds) error {
	l := o.Ledger()
	for _, r := range thresholds.Check(l) {
		for _, missing := range r.Missing {
			name, _, _ := strings.Cut(missing, " ")
			switch near := suggest.Nearest(name, l.Names()); {
			case stats.OfSome(name) || near == "" && !strings.Contains(name, "."):
			case strings.Contains(near, "."):
				return fmt.Errorf("threshold %q: %s", r.Expr, missing)
			default:
				rt.Log("warn", fmt.Sprintf("threshold %q: %s; hint: without a metric of that name it will not hold", r.Expr, missing), nil)
			}
		}
	}
	return nil
}

// sessionClose ends the session in order and frees it.
func sessionClose(c *call) int {
	h := receiver[*sessionHandle](c, "session")
	if h.o.isClosed() {
		return 0
	}
	c.ownSession(h.o)
	err := h.o.finish("closed by the script", c.rt.serveReady(c.L))
	c.rt.forget(h.o)
	c.Check(err)
	return 0
}

// ownSession raises unless it is called in the main chunk of the task that opened the session.
func (c *call) ownSession(o *RunningSession) {
	if c.rt.Task != o.owner {
		c.Raise("'%s' belongs to the task that opened the session", c.Name)
	}
	if c.rt.place != inMain || c.L != c.rt.threads.Current() {
		c.Raise("'%s' belongs to the main chunk; a handler calls s:stop(reason), and s:run ends the session", c.Name)
	}
}
