package bindings

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/kernel"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/textfile"
)

// kernelObject is a user kernel for a GPU or the host. Cold.
type kernelObject struct {
	k      *kernel.Kernel
	name   string
	grid   kernel.Grid
	stream *kernel.Stream
	places *kernel.Launcher // for k:launch; created by its first call
	persistent
}

func (*kernelObject) LuaType() string { return "kernel" }

var kernelType = &typeDef{
	name: "kernel",
	self: "k",
	doc: `a kernel
		Code of the script's own that runs on a GPU, or on the host ('daqiri.kernel'): by itself, with 'k:launch', or for each burst of a pipe, with 'k:stage'.`,
	fields: []field{
		{"completed", `-> integer
			Of a persistent kernel: descriptors that are done, refused ones among them.
			> print(k.completed)`},
		{"fault", `-> string | nil
			Of a persistent kernel: what was wrong with the last descriptor that was refused, or with the ring that broke; nil: nothing was.
			> print(k.fault)`},
		{"posted", `-> integer
			Of a persistent kernel: descriptors that were taken from its transmit rings.
			> print(k.posted)`},
		{"received", `-> integer
			Of a persistent kernel: descriptors that were written into its receive rings.
			> print(k.received)`},
		{"refused", `-> integer
			Of a persistent kernel: descriptors that were refused, or failed.
			> print(k.refused)`},
		{"running", `-> boolean
			Of a persistent kernel: whether it runs.
			> print(k.running)`},
		{"restarted", `-> integer
			Of a persistent kernel: how often it died and was started again.
			> print(k.restarted)`},
		{"semaphores", `-> semaphore[]
			Of a persistent kernel that was started: its semaphores.
			> print(#k.semaphores)`},
		{"name", `-> string
			The kernel's name, in errors and of its stages.
			> print(k.name)`},
		{"on_host", `-> boolean
			Whether the host runs it.
			> print(k.on_host)`},
	},
	get: func(_ *Runtime, _ *lua.LState, self any, key lua.LValue) lua.LValue {
		k := self.(*kernelObject)
		switch key {
		case lua.LString("name"):
			return lua.LString(k.name)
		case lua.LString("on_host"):
			return lua.LBool(k.k.OnHost())
		}
		return k.persistent.get(key)
	},
	methods: []entry{
		{"launch", kernelLaunch, `- ... any: an argument for each of the kernel's: numbers and u64s; arrays, passed as pointers; columns and 'b.present', as pointers to copies
			  of their words of 64 bits. 'b.data' is passed as a pointer to an aggregate's data, a burst as a pointer to a 'daqiri_burst'
			-> op | failure
			Begins a run of the kernel. Until its end it holds bursts and arrays, whatever the script does with them; other memory the kernel must not touch. On
			the virtual clock time stands still until then, on the host the kernel has run when the call returns. Runs of one kernel begin in order; nil,
			'"NOT_READY"', text while 64 of them are under way. What can't be passed raises; what goes wrong on the GPU is in 'op.error'.
			> local op = assert(k:launch(array, 2))
			> op:wait()
			> print(op.error)`},
		{"stage", kernelStage, `. args? table: a list of arguments, one for each of the kernel's: numbers and arrays as of 'k:launch'. Of the burst that came there are "data",
		  "present", "extra", "batch_id" (of an aggregate), "packets" (how many), "burst"
			. name? string: of its line in the ledger; by default the kernel's
			. session? session: by default the one that was opened last
			. policy policy = "drop": while 64 launches are under way
			-> stage
			Makes a stage that launches the kernel for each burst and holds the burst until the kernel has ended. Then the burst continues to the stages behind it in the pipe,
			'on_burst' and 'get_burst' of the stage, in order; where there are none it ends there. A kernel that writes packets requires that no other consumer
			reads them meanwhile.
			> local sum = daqiri.kernel{ memory = "host", grid = 1, block = 64, src = [[
			>   __global__ void sum(const unsigned char *data, int *out) { atomicAdd(out, data[threadIdx.x]); }
			> ]] }
			> local out = daqiri.array{ kind = "host", type = "int32", shape = { 1 } }
			> s:pipe(blocks, sum:stage{ args = { "data", out } })`},
		{"start", kernelStart, `. tx? queue | queue[]: a transmit ring for each, which it sends on
			. rx? queue | queue[]: a receive ring for each, which gets what it receives
			. semaphores? integer = 0: how many
			. regions? string[]: memory that it may also read, write and send from; that of its queues comes before them
			. remote? string[]: memory that stands for a peer's, where put, get and add go; after those. With 'conn' names of what the peer lends
			. conn? connection: of the transmit queues' interface: put, get and add go to what its peer lends ('roce://')
			. writers? stage[]: writers of files, which the kernel knows by their places, from 0: 'gn_file' hands bytes to their threads
			. args? table: a list of arguments: numbers, arrays, "context", and names of regions, which become the numbers that 'gn_place' takes; by default the context
			  alone. For kernels with DOCA's names also tables: '{ txq = 1 }', '{ rxq = 1 }', '{ qp = 1, rx = 1 }', '{ qps = { 1, 2 } }', '{ dma = 1 }' and '{ rdma = 1 }' are
			  pointers to rings, in the order of 'tx' and 'rx'. '{ buffers = "region", bytes = 256 }' is an array of buffers, '{ address = "region", offset = 64 }' and
			  '{ key = "region" }' are places of memory. '{ semaphore = array }' has items in rows of an array behind a row of its own, and '{ exit = true }' is a word
			  that 'k:stop' sets. '{ mlx5 = 1 }' is a transmit ring as a queue pair of an mlx5 NIC, whose entries, doorbell record and completion entries a kernel
			  writes and reads by hand
			. policy policy = "drop": when a receive ring is full
			. limit? duration: of the kernel's waits that name none; by default 10s
			. timers? boolean = false: count in the ledger how long operations took, each kind by itself: send_time, put_time, …
			. timeout? duration: for how long a kernel in a process of its own may be silent before it is killed; by default 5s
			. restarts? integer = 3: how often a kernel in a process of its own that died is started again
			. session? session: by default the one that was opened last
			-> kernel: itself
			Starts a persistent kernel. It includes 'gn.h' and gets its context as a pointer. What its descriptors say is checked: a kernel is not trusted.
			It runs in a process of its own, which has the regions and arrays that it was given and no other memory of the program. On a GPU it has one only where
			the program has no other kernels and stages there when it starts. Otherwise it runs in the program's process, and the report states that. One of a process of its own that dies, or that
			neither waits nor calls 'gn_beat' for so long, is killed. Its rings release what they hold (dropped as 'stopped'), and it starts from its beginning
			while the script waits. When that was done often enough, the run ends as by a device that failed.
			Its rings have lines in the ledger, NAME.tx and NAME.rx. The session's clock is real.
			> k:start{ tx = s:tx_queue("a", 0), rx = s:rx_queue("b", 0), semaphores = 2 }`},
		{"stop", kernelStop, `. timeout? duration: how long it waits; by default 5s
			-> true | failure
			Ends the waits of a persistent kernel, waits until it has ended and until what it posted is done, and closes its rings; nil, '"NOT_READY"', text at
			the timeout. The kernel can be started again then.
			> k:stop()`},
		{"wait", kernelWait, `. timeout? duration: how long it waits; by default without limit
			-> true | failure
			Waits until a persistent kernel has ended by itself, and what it posted is done; nil, '"NOT_READY"', text at the timeout, where the text names what is not over. Without a
			timeout it raises when the kernel has ended and a queue that nothing reads has what it sent. When the wait exceeds 5 s, it logs once what it waits for.
			> k:wait{ timeout = "1s" }`},
	},
	meta: []entry{{name: "__tostring", fn: func(c *call) int {
		k, _ := row.Userdata[*kernelObject](c.L.Get(1))
		return c.Push(lua.LString("kernel " + k.name))
	}}},
}

// streamObject is a stream that orders kernels. Cold.
type streamObject struct{ s *kernel.Stream }

func (*streamObject) LuaType() string { return "stream" }

var streamType = &typeDef{
	name: "stream",
	self: "stream",
	doc: `a stream
		An order of kernels on a GPU ('daqiri.stream'): those of one stream run one behind the other, those of different ones at the same time.`,
	methods: []entry{
		{"synchronize", streamSynchronize, `Waits until nothing is under way in the stream: kernels of the main chunk and of stages. A GPU that was lost raises.
			> stream:synchronize()`},
	},
}

// ---- where things run -------------------------------------------------------------------------------------

// gpuNumber returns the selected GPU, or the host if host memory was requested: by the options, by the command line, or by the session opened
// last.
func (o *options) gpuNumber() int {
	memory := o.c.rt.memory
	if o.Has("memory") {
		memory = o.choice("memory", kernel.Kinds...)
	}
	memory = cmp.Or(o.c.rt.Open.Memory, memory)
	address, isAddress := o.Get("gpu").(lua.LString)
	switch {
	case memory != "" && memory != "device" && memory != "host_pinned":
		return session.HostGPU
	case !isAddress:
		return int(o.Whole("gpu", 0, 0, 1<<15))
	}
	n, err := kernel.GPUAt(string(address))
	if err != nil {
		o.Wrong("gpu", "%v", err)
	}
	return n
}

// ---- making kernels ---------------------------------------------------------------------------------------

// moduleKernel implements daqiri.kernel{}.
func moduleKernel(c *call) int {
	c.AtMost(1)
	o := c.options(1)
	o.ExactlyOne("src", "file", "ptx", "library")
	entry, _, _ := strings.Cut(o.Str("entry", ""), "<") // an instance of a template has the template's name
	k := &kernelObject{name: o.Str("name", cmp.Or(entry, o.Str("library", "")))}
	if o.Has("library") {
		k.fromLibrary(o)
		return c.Push(c.rt.newObject(k))
	}
	o.Need("grid", "block")
	k.grid.Grid, k.grid.Block = o.dimensions("grid"), o.dimensions("block")
	k.stream = o.stream("stream")
	s := kernel.Source{Entry: o.Str("entry", ""), GPU: o.gpuNumber()}
	o.kernelText(&s)
	if k.name != "" {
		s.Title = "kernel " + k.name
	}
	made, err := kernel.Build(s)
	c.Check(err)
	k.k, k.name = made, cmp.Or(k.name, made.Entry)
	k.options(o)
	return c.Push(c.rt.newObject(k))
}

// fromLibrary configures a kernel that calls an NVIDIA library.
func (k *kernelObject) fromLibrary(o *options) {
	o.Need("shape")
	for _, key := range []string{"grid", "block", "entry"} {
		if o.Has(key) {
			o.Wrong(key, "the library sees to it")
		}
	}
	m := kernel.Math{Title: "kernel " + k.name, Name: o.Str("library", ""), Shape: o.shape("shape"), GPU: o.gpuNumber()}
	k.grid = kernel.Grid{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	var err error
	k.k, k.stream, err = kernel.BuildMath(m, o.stream("stream"))
	o.c.Check(err)
}

// kernelText reads the source text and determines its position.
func (o *options) kernelText(s *kernel.Source) {
	switch {
	case o.Has("src"):
		s.Text = o.Str("src", "")
		s.File, s.Line = o.c.placeOf(s.Text)
	case o.Has("ptx"):
		s.Text, s.PTX = o.Str("ptx", ""), true
	default:
		s.File = o.Str("file", "")
		text, err := textfile.Read(o.c.rt.find(s.File))
		if shipped := o.c.rt.shippedText(s.File); err != nil && shipped != "" {
			text, err = []byte(shipped), nil
		}
		if err != nil {
			o.Wrong("file", "%v: looked %s", err, o.c.rt.places())
		}
		s.Text, s.PTX = string(text), strings.HasSuffix(s.File, ".ptx")
		if !s.PTX {
			at := filepath.Dir(o.c.rt.find(s.File))
			folders := []string{at, filepath.Dir(at)}
			o.each("include", "folders", 16, func(v lua.LValue) { folders = append(folders, o.c.rt.find(v.String())) })
			s.FindHeaders(folders)
		}
	}
}

// placeOf returns the file and line at which a text begins in the script's source. A text assembled at run time gets its own line numbers and the
// position of the call as its name.
func (c *call) placeOf(text string) (file string, line int) {
	dbg := c.script()
	if dbg == nil {
		return "kernel", 1
	}
	whole, err := textfile.Read(c.rt.find(dbg.Source))
	if err != nil {
		whole = []byte(c.rt.shippedText(dbg.Source))
	}
	best, from := 0, 0
	for at := strings.Index(string(whole), text); at >= 0 && text != ""; at = strings.Index(string(whole[from:]), text) {
		from += at + 1
		n := 1 + strings.Count(string(whole[:from-1]), "\n")
		if best == 0 || distance(n, dbg.CurrentLine) < distance(best, dbg.CurrentLine) {
			best = n
		}
	}
	if best > 0 {
		return dbg.Source, best
	}
	return fmt.Sprintf("source at %s:%d", dbg.Source, dbg.CurrentLine), 1
}

// script returns the innermost script function of the call stack, also through pcall; nil if there is none.
func (c *call) script() *lua.Debug {
	for level := 1; ; level++ {
		dbg, ok := c.L.GetStack(level)
		if !ok {
			return nil
		}
		if _, err := c.L.GetInfo("Sl", dbg, lua.LNil); err == nil && dbg.What != "Go" && dbg.What != "G" && dbg.CurrentLine > 0 {
			return dbg
		}
	}
}

func distance(a, b int) int { return max(a-b, b-a) }

// dimensions reads a number, or a list of up to three.
func (o *options) dimensions(key string) (d [3]uint32) {
	d = [3]uint32{1, 1, 1}
	t, ok := o.Get(key).(*lua.LTable)
	if !ok {
		d[0] = uint32(o.Whole(key, 1, 1, 1<<31-1))
		return d
	}
	if t.Len() < 1 || t.Len() > 3 {
		o.Wrong(key, "a number, or a list of 1 to 3, expected")
	}
	for i := range t.Len() {
		n, err := row.WholeNumber(t.RawGetInt(i+1), 1, 1<<31-1)
		if err != nil {
			o.Wrong(key, "%v", err)
		}
		d[i] = uint32(n)
	}
	return d
}

func (o *options) stream(key string) *kernel.Stream {
	if !o.Has(key) {
		return nil
	}
	s, ok := row.Userdata[*streamObject](o.Get(key))
	if !ok {
		o.Wrong(key, "a stream expected, got %s", row.Describe(o.Get(key)))
	}
	return s.s
}

// moduleStream implements daqiri.stream{gpu, memory}.
func moduleStream(c *call) int {
	c.AtMost(1)
	s, err := kernel.NewStream(c.options(1).gpuNumber())
	c.Check(err)
	return c.Push(c.rt.newObject(&streamObject{s}))
}

func streamSynchronize(c *call) int {
	c.Check(receiver[*streamObject](c, "stream").s.Synchronize())
	return 0
}

// ---- arguments --------------------------------------------------------------------------------------------

// argument sets argument i, counted from 0, from a Lua value and returns the burst it refers to, or nil. named: strings name properties of a
// burst.
func (k *kernelObject) argument(c *call, i int, v lua.LValue, named bool) (kernel.Arg, *session.Burst, error) {
	var a kernel.Arg
	var err error
	switch v := v.(type) {
	case lua.LNumber:
		a, err = k.k.NumberArg(i, float64(v))
		return a, nil, err
	case lua.LBool:
		a, err = k.k.NumberArg(i, map[lua.LBool]float64{true: 1}[v])
		return a, nil, err
	case lua.LString:
		kind, known := kernel.Special[string(v)]
		if !named || !known {
			break
		}
		a, err = k.k.SpecialArg(i, kind, fmt.Sprintf("%q", string(v)))
		return a, nil, err
	case *lua.LUserData:
		return k.object(c, i, v.Value, named)
	}
	return a, nil, k.unfit(i, row.Describe(v), named)
}

func (k *kernelObject) unfit(i int, what string, named bool) error {
	may := "a number, a u64, an array, a column, a burst, b.data or b.present"
	if named {
		may = "a number, a u64, an array or one of " + strings.Join(slices.Sorted(maps.Keys(kernel.Special)), ", ")
	}
	return k.k.Unfit(i, fmt.Sprintf("%s expected, got %s", may, what))
}

// object sets argument i from a userdata.
func (k *kernelObject) object(c *call, i int, value any, named bool) (a kernel.Arg, of *session.Burst, err error) {
	switch v := value.(type) {
	case row.U64:
		a, err = k.k.WideArg(i, uint64(v))
		return a, nil, err
	case *arrayObject:
		a, err = k.k.ArrayArg(i, v.a)
		return a, nil, err
	}
	if named {
		return a, nil, k.unfit(i, describeObject(value), named)
	}
	switch v := value.(type) {
	case *column:
		a, err = k.k.WordsArg(i, v.values.List())
	case *presence:
		a, err = k.k.WordsArg(i, slices.Clone(v.bits))
	case *burst:
		return k.ofBurst(c, i, v, "burst")
	case *packet:
		if v.seg != 0 || v.i != 0 || v.of.b.N() != 1 {
			return a, nil, k.k.Unfit(i, "of packets a burst is passed whole; b.data is that of an aggregate")
		}
		return k.ofBurst(c, i, v.of, "data")
	default:
		err = k.unfit(i, describeObject(value), named)
	}
	return a, nil, err
}

func describeObject(value any) string {
	if n, ok := value.(row.Object); ok {
		return "a " + n.LuaType()
	}
	return "an object"
}

func (k *kernelObject) ofBurst(c *call, i int, b *burst, what string) (kernel.Arg, *session.Burst, error) {
	b.check(c.L)
	a, err := k.k.SpecialArg(i, kernel.Special[what], "a burst")
	if err == nil {
		a, err = b.b.BurstArg(a)
	}
	return a, b.b, err
}

// ---- running ----------------------------------------------------------------------------------------------

// kernelLaunch implements k:launch(...).
func kernelLaunch(c *call) int {
	k := receiver[*kernelObject](c, "kernel")
	c.Check(k.k.CheckCount(c.Count()))
	var args []kernel.Arg
	var bursts []*session.Burst
	for i := range c.Count() {
		a, of, err := k.argument(c, i, c.Arg(i+1), false)
		c.Check(err)
		args = append(args, a)
		if of != nil {
			bursts = append(bursts, of)
		}
	}
	if k.places == nil {
		places, err := kernel.NewLauncher(k.k, k.grid, k.stream)
		c.Check(err)
		k.places = places
	}
	op, err := session.Launch(c.L.Context(), c.rt.Task, k.places, args, bursts)
	if err != nil {
		return c.Fail(err)
	}
	return c.Push(c.rt.newOp(op))
}

// kernelStage implements k:stage{args, name, session, policy}.
func kernelStage(c *call) int {
	k := receiver[*kernelObject](c, "kernel")
	o := c.options(1)
	of := o.session("session")
	var list []lua.LValue
	if t, ok := o.Get("args").(*lua.LTable); ok {
		for i := range t.Len() {
			list = append(list, t.RawGetInt(i+1))
		}
	} else if o.Has("args") {
		o.Wrong("args", "a list expected, got %s", row.Describe(o.Get("args")))
	}
	c.Check(k.k.CheckCount(len(list)))
	opts := session.KernelOptions{Kernel: k.k, Grid: k.grid, Stream: k.stream, Policy: o.Policy(session.Drop)}
	for i, v := range list {
		a, _, err := k.argument(c, i, v, true)
		c.Check(err)
		opts.Args = append(opts.Args, a)
	}
	st, err := of.s.Kernel(o.Str("name", k.name), opts)
	return c.pushStage(st, of, err)
}

// session reads a session option; the default is the session that this task opened last.
func (o *options) session(key string) *RunningSession {
	if !o.Has(key) {
		if n := len(o.c.rt.opened); n > 0 {
			return o.c.rt.opened[n-1]
		}
		o.Raise("there is no open session: give option '%s'", key)
	}
	s, ok := row.Userdata[*sessionHandle](o.Get(key))
	if !ok {
		o.Wrong(key, "a session expected, got %s", row.Describe(o.Get(key)))
	}
	s.o.check(o.c)
	return s.o
}
