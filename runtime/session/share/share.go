package share

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/listen"
)

// Options describes a share stage.
type Options struct {
	Path    string        // of the socket; empty: the stage's name in the folder of the user's sockets
	Mode    fs.FileMode   // permissions of the socket's file; users other than this one and root connect only if it permits others
	Lend    int           // blocks that a reader may have at a time
	Readers int           // readers at a time
	Wait    bool          // wait for readers that have as many blocks as they may
	Timeout time.Duration // of each wait, and of all that begin or continue during End
	Header  string        // text for readers
	Log     func(level, text string, fields map[string]any)
}

// Share lends the bursts of a stage to readers. All methods are safe for concurrent use.
type Share struct {
	Options
	name     string
	st       native.Stage
	listener *listen.Listener
	over     chan struct{} // closed when the stage's bursts have ended
	once     sync.Once

	mu         sync.Mutex
	free       *sync.Cond // a reader released a block, or disconnected
	readers    map[*reader]bool
	last       int      // number of the last reader
	leases     []*lease // by index; nil: free
	regions    map[native.Region]*os.File
	shape      shape
	shapeNo    int       // number of changes of the shape
	headers    []byte    // file of the headers of blocks of the shape, one for each index; mapped
	lent       *os.File  // the same, read-only
	generation uint32    // of the last block
	closing    time.Time // end of all waits; zero before End
	ended      bool
	started    bool // the stage's bursts have a consumer
	failed     bool // an error was logged
}

// shape contains what is the same for all blocks of a headers' file.
type shape struct {
	slots, slotBytes, cells, cellBytes int
	dtype                              native.Dtype
	extra                              bool
	region                             *os.File // read-only
}

// lease is a block that readers have.
type lease struct {
	burst      native.Burst
	generation uint32
	readers    int
	bytes      int
}

// New listens for readers, which get blocks once Start was called.
func New(name string, o Options) (*Share, error) {
	if o.Path == "" {
		dir, own := listen.SocketFolder(os.Getenv("XDG_RUNTIME_DIR"))
		if err := listen.Folder(dir, own); err != nil {
			return nil, err
		}
		o.Path = filepath.Join(dir, name)
	}
	l, err := listen.Unix("unixpacket", o.Path, o.Mode)
	if err != nil {
		return nil, err
	}
	s := &Share{Options: o, name: name, listener: listen.New(l), over: make(chan struct{}), readers: map[*reader]bool{},
		leases: make([]*lease, o.Lend*o.Readers), regions: map[native.Region]*os.File{}}
	s.free = sync.NewCond(&s.mu)
	go s.listener.Serve(func(c *listen.Conn) { s.serve(c, c.Conn.(*net.UnixConn)) })
	return s, nil
}

// Start lends the bursts that the stage receives.
func (s *Share) Start(st native.Stage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.st, s.started = st, true
	st.Note(native.ExtraReaders, int64(len(s.readers)))
	go s.take()
}

// Add permits blocks in a region, whose memory readers will map. Errors: ErrNotSupported if its memory is not shared.
func (s *Share) Add(r native.Region) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.regions[r] != nil {
		return nil
	}
	f, err := r.Lend()
	if err == nil {
		s.regions[r] = f
	}
	return err
}

// take lends bursts until the stage's end.
func (s *Share) take() {
	defer close(s.over)
	var v native.View
	for {
		b, _, ok := s.st.Take(&v)
		if !ok {
			return
		}
		if err := s.offer(b, &v); err != nil {
			s.st.Lost(native.DropWriteError, int(v.N))
			if !s.failed {
				s.failed = true
				s.Log("error", fmt.Sprintf("share %s: %v", s.name, err), nil)
			}
		}
		b.Unref()
	}
}

// offer lends a block to all readers that may have another one.
func (s *Share) offer(b native.Burst, v *native.View) error {
	a, ok := b.Aggregate()
	if !ok {
		return errors.New("its packets were not assembled to blocks")
	}
	header, _ := b.Block()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Wait {
		s.await()
	}
	l := &lease{burst: b, bytes: int(v.Bytes)}
	index := slices.Index(s.leases, nil)
	if index < 0 || len(s.readers) == 0 { // without a free index all readers have what they may
		s.settle(l)
		for r := range s.readers {
			r.miss()
		}
		return nil
	}
	at, in := b.Offsets(v, 0)
	if err := s.describe(b, &a, in, len(header)); err != nil {
		return err
	}
	copy(s.headers[native.BlockFileHeaderBytes+index*len(header):], header)
	s.generation++
	l.generation = s.generation
	for _, r := range s.sorted() {
		if len(r.has) >= s.Lend {
			r.miss()
		} else if r.announce(index, l, at[0]) {
			l.readers++
		}
	}
	if l.readers == 0 {
		s.settle(l)
		return nil
	}
	b.Ref()
	s.leases[index] = l
	return nil
}

// sorted returns the readers in the order in which they attached.
func (s *Share) sorted() []*reader {
	return slices.SortedFunc(maps.Keys(s.readers), func(a, b *reader) int { return a.number - b.number })
}

// await waits until each reader may have a block, or for the timeout. A reader that did not release one in this time is not waited for until it does.
// During End it waits at most until the end of all waits.
func (s *Share) await() {
	full := func() bool {
		for r := range s.readers {
			if len(r.has) >= s.Lend && !r.slow {
				return true
			}
		}
		return false
	}
	if !full() {
		return
	}
	late := false
	defer s.after(s.Timeout, func() { late = true }).Stop()
	for full() && !late && (s.closing.IsZero() || time.Now().Before(s.closing)) {
		s.free.Wait()
	}
	for r := range s.readers {
		r.slow = r.slow || len(r.has) >= s.Lend
	}
}

// describe replaces the headers' file if the shape of the burst's block differs from the last one's.
func (s *Share) describe(b native.Burst, a *native.Aggregate, in native.Region, headerBytes int) error {
	r := s.regions[in]
	if r == nil {
		return errors.New("a block lies in memory that is not shared")
	}
	n := shape{a.Slots, a.SlotBytes, a.Cells, a.CellBytes, a.Dtype, a.Extra != nil, r}
	if n == s.shape {
		return nil
	}
	file := b.BlockFileHeader(s.name, s.Header, uint64(s.shapeNo))
	size := len(file) + headerBytes*len(s.leases)
	f, err := native.SharedFile("daqiri-headers", size)
	if err != nil {
		return err
	}
	defer f.Close()
	lent, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return err
	}
	headers, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		_ = lent.Close()
		return fmt.Errorf("cannot map the headers of blocks: %w", err)
	}
	copy(headers, file)
	s.closeHeaders()
	s.headers, s.lent, s.shape = headers, lent, n
	s.shapeNo++
	return nil
}

func (s *Share) closeHeaders() {
	if s.headers != nil {
		_ = errors.Join(syscall.Munmap(s.headers), s.lent.Close())
	}
}

// settle counts a block that no reader has any more.
func (s *Share) settle(l *lease) { s.st.Out(1, l.bytes) }

// release ends a reader's lease of a block.
func (s *Share) release(index uint32) {
	l := s.leases[index]
	if l.readers--; l.readers == 0 {
		s.leases[index] = nil
		l.burst.Unref()
		s.settle(l)
	}
}

// Reader describes an attached reader.
type Reader struct {
	PID    int // process id
	Lent   int // blocks that it has
	Blocks int // blocks announced to it
	Missed int // blocks not announced, because it had as many as it may
}

// Attached returns the readers in the order in which they attached.
func (s *Share) Attached() (list []Reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.sorted() {
		list = append(list, Reader{r.pid, len(r.has), r.blocks, r.missed})
	}
	return list
}

// close ends all waits for readers together after the timeout, counted from now.
func (s *Share) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = time.Now().Add(s.Timeout)
	s.after(s.Timeout, func() {})
}

// after calls f once d has passed, with the lock, and wakes the waits.
func (s *Share) after(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		f()
		s.free.Broadcast()
	})
}

// End lends the remaining bursts, for which it waits for readers at most the timeout in all, sends the readers the reason, and ends all leases. The
// session must have stopped to receive, so that blocks which readers have remain unchanged. It is idempotent.
func (s *Share) End(reason string) {
	s.once.Do(func() {
		s.close()
		if s.started {
			s.st.End()
			<-s.over
		}
		_ = s.listener.Close()
		_ = os.Remove(s.Path)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended = true
		for _, r := range s.sorted() {
			_ = send(r.raw, end(reason, r.unsaid))
			s.detach(r, "info", reason)
		}
		s.closeHeaders()
		for _, f := range s.regions {
			_ = f.Close()
		}
	})
}
