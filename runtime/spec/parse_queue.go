package spec

func (p *parser) queues(o *object, tx, roce bool) []*Queue {
	var list []*Queue
	for _, v := range o.list("queues", false) {
		list = append(list, p.queue(v, tx, roce))
	}
	if o.empty("queues") {
		p.errorf(o.Key("queues"), "at least one queue is needed")
	}
	return list
}

func (p *parser) queue(v value, tx, roce bool) *Queue {
	o := p.object(v)
	q := &Queue{Source: o.Source, CPUCore: -1}
	q.Name = o.name("name")
	q.ID = integer[int](o, "id", 0, maxU16)
	q.PollMode = o.choice("poll_mode", []string{PollIndirect, PollDirect}, PollIndirect)
	if q.Direct() {
		o.refuse("cpu_core", "has no place with poll_mode direct: the asking thread polls")
		o.refuse("timeout_us", "has no place with poll_mode direct: a poll returns what is there")
		q.BatchSize = integer(o, "batch_size", 1, maxBatch, directBatch)
	} else {
		q.CPUCore = integer[int](o, "cpu_core", -1, maxU16)
		q.BatchSize = integer[int](o, "batch_size", 1, maxBatch)
		q.TimeoutUS = integer[int64](o, "timeout_us", 0, maxU32, 0)
		if tx {
			o.effectless("timeout_us", " on a transmit queue")
		}
		q.DefaultTimeout = !tx && !o.Has("timeout_us")
	}
	p.queueRegions(o, q, roce)
	if tx {
		p.txQueue(o, q)
	} else {
		for _, key := range []string{"offloads", "pacing_mbps", "inline_data", "gpunetio"} {
			o.refuse(key, "belongs to a transmit queue")
		}
	}
	o.end()
	return q
}

// defaultTimeouts lets bursts of frames end where the configuration doesn't say when.
func (rx *RX) defaultTimeouts() {
	for _, q := range rx.Queues {
		if q.DefaultTimeout {
			q.TimeoutUS = defaultTimeoutUS
		}
	}
}

func (p *parser) queueRegions(o *object, q *Queue, roce bool) {
	items := o.list("memory_regions", roce)
	for _, v := range items {
		if s, ok := p.text(v); ok {
			q.MemoryRegions = append(q.MemoryRegions, s)
			q.regionAt = append(q.regionAt, v.Source)
		}
	}
	switch {
	case roce:
		o.effectless("memory_regions", " on a roce queue: each operation names its region")
	case o.empty("memory_regions"):
		p.errorf(o.Key("memory_regions"), "at least one region is needed")
	case len(items) > maxSegments:
		p.errorf(o.Key("memory_regions"), "%d regions, but a packet has at most %d segments", len(items), maxSegments)
	}
}

func (p *parser) txQueue(o *object, q *Queue) {
	for _, v := range o.list("offloads", true) {
		q.Offloads = p.addUnique(q.Offloads, v, p.choice(v, []string{"tx_eth_src"}))
	}
	q.PacingMbps = integer[int64](o, "pacing_mbps", 0, 100_000_000, 0)
	q.InlineData = o.boolean("inline_data", false)
	o.effectless("inline_data", ": the engines decide what they copy")
	if g := o.child("gpunetio", true); g.ok() {
		q.TxKernel = g.choice("tx_kernel", []string{"persistent", "per_burst"}, "persistent")
		g.end()
	}
}
