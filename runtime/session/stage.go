package session

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/session/output"
	"github.com/daqiri/daqiri-run/runtime/session/share"
	"github.com/daqiri/daqiri-run/runtime/session/upload"
)

// Policy selects what a slow consumer does to the stream.
type Policy = native.Policy

// Policies.
const (
	Drop Policy = native.PolicyDrop // the consumer loses packets, which are counted
	Wait Policy = native.PolicyWait // the consumer blocks the queue
)

// ParsePolicy parses "drop" or "wait".
func ParsePolicy(text string) (Policy, error) {
	switch text {
	case "drop":
		return Drop, nil
	case "wait":
		return Wait, nil
	}
	return Drop, fmt.Errorf("policy %q: it is \"drop\" or \"wait\"", text)
}

// Kinds of stage, in addition to those of file writers (Format).
const (
	KindFilter  = "filter"
	KindCount   = "count"
	KindSample  = "sample"
	KindGaps    = "gaps"
	KindForward = "forward"
	KindTap     = "tap"
	KindS3      = "s3"
	KindShare   = "share" // lends aggregates to other processes
)

// Stage is a native processing step for bursts, in any number of pipes of its session.
type Stage struct {
	s         *Session
	name      string
	kind      string
	native    native.Stage
	layer     string           // layer of supported queues; empty: any
	to        *Queue           // transmit queue of a forward stage; nil: none
	out       *Queue           // output queue of a reorder or similar stage
	region    string           // output region of a reorder or convert stage; empty: none
	loops     bool             // rewrite stage that uses loops of captures
	timeoutNS int64            // timeout of a reorder stage's batches; 0: none
	writer    *WriterOptions   // options of a file writer; else nil
	manifest  *output.Record   // manifest of a file writer; nil: none
	s3        *upload.Uploader // uploader of an object writer; else nil
	share     *share.Share     // lender of a share stage; else nil
	uses      KernelOptions    // options of a kernel stage, referenced as long as the stage
}

// Name returns the stage's name, unique in its session and used in the ledger.
func (st *Stage) Name() string { return st.name }

// Kind returns the kind of the stage.
func (st *Stage) Kind() string { return st.kind }

// stage creates a stage with a name, which is generated if it is empty.
func (s *Session) stage(name, kind, layer string, add func(name string) (native.Stage, error)) (*Stage, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	if name == "" {
		name = s.freeName(kind)
	} else if s.nameTaken(name) {
		return nil, invalid("stage %s: the name is taken in this session", name)
	}
	n, err := add(name)
	if err != nil {
		return nil, fmt.Errorf("stage %s: %w", name, err)
	}
	st := &Stage{s: s, name: name, kind: kind, native: n, layer: layer}
	s.stages = append(s.stages, st)
	return st, nil
}

// nameTaken reports whether a name is used by a stage, an interface, or ledger lines.
func (s *Session) nameTaken(name string) bool {
	return name == "process" || name == "session" ||
		slices.ContainsFunc(s.stages, func(st *Stage) bool { return st.name == name }) ||
		slices.ContainsFunc(s.ifaces, func(i *Interface) bool { return i.Name() == name })
}

// madeUp is freeName for callers without the lock.
func (s *Session) madeUp(kind string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.freeName(kind)
}

// freeName generates a name: "filter1".
func (s *Session) freeName(kind string) string {
	for {
		s.unnamed[kind]++
		if name := kind + strconv.Itoa(s.unnamed[kind]); !s.nameTaken(name) {
			return name
		}
	}
}

// Count creates a stage that counts packets.
func (s *Session) Count(name string) (*Stage, error) {
	return s.stage(name, KindCount, "", func(n string) (native.Stage, error) { return s.native.AddCount(n) })
}

// Sample creates a stage that passes one burst out of every.
func (s *Session) Sample(name string, every int) (*Stage, error) {
	if every < 1 {
		return nil, invalid("sample: one of %d bursts: it must be 1 or more", every)
	}
	return s.stage(name, KindSample, "", func(n string) (native.Stage, error) { return s.native.AddSample(n, every) })
}

// GapsOptions describes the numbers that a gaps stage follows.
type GapsOptions struct {
	Counter     Field
	CounterName string              // name of Counter in Fields, if its position depends on the packet; else empty
	By          string              // number over Fields that distinguishes streams; empty: one stream
	ByText      func(uint64) string // formats such a number; nil: decimal
	Fields      Fields
	Window      int    // numbers; 0: the default
	Jump        uint64 // numbers; 0: the default
}

// Limits of a gaps stage, and its defaults, which also are at most a quarter of what the counter's bits count.
const (
	MaxGapWindow     = native.MaxGapWindow
	defaultGapWindow = 1024
	defaultGapJump   = 1 << 24
)

// Gaps creates a stage that counts missing, reordered and duplicate numbers of packets, and passes the packets on.
func (s *Session) Gaps(name string, o GapsOptions) (*Stage, error) {
	bits := int(o.Counter.BitWidth)
	if bits < native.LeastGapBits {
		return nil, invalid("gaps %s: a counter of %d bits wraps too soon to tell what is missing (expected %d to 64)", name, bits, native.LeastGapBits)
	}
	quarter := uint64(1) << (bits - 2)
	conf := native.GapsConf{Bits: bits, Window: o.Window, Jump: o.Jump}
	if conf.Window == 0 {
		conf.Window = int(min(defaultGapWindow, quarter))
	}
	if conf.Jump == 0 {
		conf.Jump = min(defaultGapJump, quarter)
	}
	fields := placeFields{map[string]*Field{"counter": &o.Counter}, map[string]string{"counter": o.CounterName}, o.Fields}
	err := compileRule(fields, []ruleText{{"counter", "counter", &conf.Counter}})
	if err == nil {
		err = compileRule(o.Fields, []ruleText{{"by", o.By, &conf.By}})
	}
	if err != nil {
		return nil, fmt.Errorf("gaps %s: %w", name, err)
	}
	return s.stage(name, KindGaps, "", func(n string) (native.Stage, error) {
		if o.ByText != nil {
			s.sourceTexts.Store(n, o.ByText)
		}
		return s.native.AddGaps(n, conf)
	})
}

// Forward creates a stage that sends bursts on a transmit queue.
func (s *Session) Forward(name string, tx *Queue, policy Policy) (*Stage, error) {
	if tx.rx || tx.i.s != s {
		return nil, invalid("forward: %s is not a transmit queue of this session", tx.Name())
	}
	st, err := s.stage(name, KindForward, tx.Layer(), func(n string) (native.Stage, error) {
		if tx.Deleted() {
			return native.Stage{}, invalid("queue %s was deleted", tx.Name())
		}
		return s.native.AddForward(n, tx.native, policy)
	})
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		st.to = tx
	}
	return st, err
}

// shareDepth is the maximum number of aggregates that wait to be announced.
const shareDepth = 32

// spareBuffers is the number of buffers of a region that assembly and aggregates which wait to be announced need in addition to those that readers
// have.
const spareBuffers = 8 + shareDepth

// Limits of ShareOptions.
const (
	MaxLend    = 64
	MaxReaders = 32
)

// ShareOptions describes how a stage lends aggregates. The Wait of share.Options is that of Policy.
type ShareOptions struct {
	share.Options
	Policy Policy
}

// Reader describes a process that is attached to a share stage.
type Reader = share.Reader

// Share creates a stage that lends aggregates to other processes and passes them on.
func (s *Session) Share(name string, o ShareOptions) (*Stage, error) {
	o.Wait = o.Policy == Wait
	var lender *share.Share
	st, err := s.stage(name, KindShare, "", func(n string) (st native.Stage, err error) {
		if lender, err = share.New(n, o.Options); err != nil {
			return st, err
		}
		if st, err = s.native.AddShare(n, shareDepth, o.Policy); err != nil {
			lender.End(err.Error())
		}
		return st, err
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	lender.Start(st.native)
	st.share = lender
	return st, nil
}

// lends checks that the queue delivers aggregates in memory that other processes can map, and lends this memory to readers.
func (st *Stage) lends(q *Queue) error {
	if q.stage == nil || q.stage.kind != KindReorder && q.stage.kind != KindHeaps {
		return invalid("stage %s (share): it lends aggregates: put it behind a stage s:reorder or s:heaps", st.name)
	}
	r, err := named(st.s.regions, "memory region", q.stage.region, (*Region).Name)
	if err != nil {
		return err
	}
	if err := st.share.Add(r.native); err != nil {
		return fmt.Errorf("stage %s (share): cannot lend memory region %s: %w; hint: set shared: true for it in memory_regions", st.name, r.Name(), err)
	}
	return nil
}

// tooFew returns a warning if readers can have so many of a region's buffers that too few remain for new aggregates.
func (st *Stage) tooFew(q *Queue) string {
	most := st.share.Lend * st.share.Readers
	r, err := named(st.s.regions, "memory region", q.stage.region, (*Region).Name)
	if err != nil || r.spec.NumBufs >= most+spareBuffers {
		return ""
	}
	return fmt.Sprintf("share %s: %d readers may have %d blocks each, and memory region %s has %d buffers: packets are lost when readers have most of them: "+
		"hint: num_bufs of %d or more", st.name, st.share.Readers, st.share.Lend, r.Name(), r.spec.NumBufs, most+spareBuffers)
}

// SharePath returns the socket of a share stage; "" for other stages.
func (st *Stage) SharePath() string {
	if st.share == nil {
		return ""
	}
	return st.share.Path
}

// Readers returns the processes attached to a share stage, in the order in which they attached.
func (st *Stage) Readers() []Reader {
	if st.share == nil {
		return nil
	}
	return st.share.Attached()
}

// endShares ends the leases of all readers. The session's lock must be held.
func (s *Session) endShares() {
	reason, stopping := s.Stopping()
	if !stopping {
		reason = "the run has ended"
	}
	for _, st := range s.stages {
		if st.share != nil {
			st.share.End(reason)
		}
	}
}
