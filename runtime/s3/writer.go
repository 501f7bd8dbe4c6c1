package s3

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// partBytes is what one request sends at most: an object that is larger goes up in parts, from when its first is full.
const partBytes = 8 << 20

// Account hears what became of packets, each of which is told of once. Any goroutine.
type Account interface {
	Uploaded(packets, bytes int) // one object
	Lost(why error, packets int) // ErrBehind, ErrDevice, or what the store said
	Retried()
	Stalled(time.Duration) // the consumer waited for staging memory
	Busy(n int)            // so many more requests, or fewer, are on their way
}

// NoTime is the time of a packet that was made here, or captured without one.
const NoTime int64 = math.MinInt64

// Packet is what Add uploads.
type Packet struct {
	Len   int              // bytes
	Bytes iter.Seq[[]byte] // a part after the other, each good until the next; where they end early their device is lost
	Time  int64            // of its receipt, ns; NoTime: it has none
	Key   string           // of an object of its own; empty: the writer's next
	Skip  int              // with a Key: bytes left out at its front, instead of the writer's
	Meta  map[string]string
	Op    Op     // may be nil
	Block *Block // it is one; nil: its bytes are all there is
}

// Block is what a packet has about it in an object of its own kind alone.
type Block struct {
	Shape          string // of all blocks of an object
	Header, Behind []byte
	Start          func(index uint64) []byte // the object's first bytes
}

// Writer fills objects and uploads them. Add, Flush and Close are one goroutine's.
type Writer struct {
	c       Config
	core    *minio.Core
	keys    *credentials.Credentials
	account Account
	staging *staging
	jobs    chan job
	workers sync.WaitGroup
	ctx     context.Context
	cancel  context.CancelFunc
	cur     *object // being filled; nil: none
	next    uint64  // index of the next object

	mu     sync.Mutex
	broken error // why nothing will be uploaded any more
	err    error // the first
	failed int   // objects
}

// New makes a writer. It asks nothing of the store.
func New(c Config, account Account) (*Writer, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	core, keys, err := c.client()
	if err != nil {
		return nil, err
	}
	w := &Writer{c: c, core: core, keys: keys, account: account, staging: newStaging(c.Staging)}
	w.jobs = make(chan job, cap(w.staging.free)) // each has a chunk at least: sending never blocks
	w.ctx, w.cancel = context.WithCancel(context.Background())
	for range c.Uploads {
		w.workers.Go(w.work)
	}
	return w, nil
}

// Add copies a packet into the object that is being filled.
func (w *Writer) Add(p *Packet) {
	skip := w.c.PacketDataOffset
	if p.Key != "" {
		skip = p.Skip
	}
	if p.Block != nil {
		skip = 0
	}
	data := max(p.Len-skip, 0)
	size := data
	if p.Block != nil {
		size += len(p.Block.Header) + len(p.Block.Behind)
	}
	if err := w.refusal(size); err != nil {
		w.account.Lost(err, 1)
		settle(p.Op, 1, 0, err)
		return
	}
	o := w.object(p, size)
	w.copy(o, p, skip)
	o.add(p, size, data)
	if p.Key != "" || (w.c.PacketsPerObject > 0 && o.packets >= w.c.PacketsPerObject) ||
		(w.c.BytesPerObject > 0 && o.bytes >= w.c.BytesPerObject) {
		w.Flush()
	}
}

// copy fills o with the packet's bytes behind the first skip, and what a block has about them.
func (w *Writer) copy(o *object, p *Packet, skip int) {
	if p.Block != nil {
		w.fill(o, p.Block.Header)
	}
	came := 0
	for part := range p.Bytes {
		n := min(skip, len(part))
		skip -= n
		w.fill(o, part[n:])
		came += len(part)
	}
	if p.Block != nil {
		w.fill(o, p.Block.Behind)
	}
	if came < p.Len {
		o.fail(ErrDevice)
		w.mu.Lock()
		w.broken = ErrDevice
		w.mu.Unlock()
	}
}

func (b *Block) shape() string {
	if b == nil {
		return ""
	}
	return b.Shape
}

// refusal says why a packet can't be taken; nil: it can.
func (w *Writer) refusal(size int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.broken != nil:
		return w.broken
	case !w.c.Wait && !w.staging.has(size):
		return ErrBehind
	}
	return nil
}

// object is the one that the packet goes to.
func (w *Writer) object(p *Packet, size int) *object {
	full := w.cur != nil && w.c.BytesPerObject > 0 && w.cur.bytes+int64(size) > w.c.BytesPerObject
	other := w.cur != nil && w.cur.shape != p.Block.shape()
	if p.Key != "" || full || other {
		w.Flush()
	}
	if w.cur == nil {
		key, index := p.Key, w.next
		if key == "" {
			key = w.c.Prefix + "_" + strconv.FormatUint(index, 10)
			w.next++
		}
		w.cur = &object{key: key, left: 1, meta: maps.Clone(p.Meta), shape: p.Block.shape()}
		if p.Block != nil {
			start := p.Block.Start(index)
			w.fill(w.cur, start)
			w.cur.bytes = int64(len(start))
		}
	}
	return w.cur
}

// fill copies data into o, and sends what makes a whole part on its way when more follows.
func (w *Writer) fill(o *object, data []byte) {
	for len(data) > 0 {
		if o.fill.n == partBytes {
			w.emit(o, false)
		}
		to := o.fill.room()
		if to == nil {
			c := w.chunk()
			if c == nil { // the end came meanwhile
				o.fail(w.ctx.Err())
				return
			}
			o.fill.chunks = append(o.fill.chunks, c)
			to = o.fill.room()
		}
		data = o.fill.append(to, data)
	}
}

// chunk takes staging memory, and waits for it; nil: the writer was cancelled.
func (w *Writer) chunk() []byte {
	select {
	case c := <-w.staging.free:
		return c
	default:
	}
	from := time.Now()
	defer func() { w.account.Stalled(time.Since(from)) }()
	select {
	case c := <-w.staging.free:
		return c
	case <-w.ctx.Done():
		return nil
	}
}

func (w *Writer) emit(o *object, last bool) {
	o.parts++
	if !last {
		o.grow()
	}
	w.account.Busy(1)
	w.jobs <- job{o: o, part: o.parts, body: o.fill, last: last}
	o.fill = body{}
}

// Flush ends the object that is being filled.
func (w *Writer) Flush() {
	if o := w.cur; o != nil {
		w.cur = nil
		if len(o.fill.chunks) == 0 { // empty packets: a job has a chunk
			if c := w.chunk(); c != nil {
				o.fill.chunks = append(o.fill.chunks, c)
			}
		}
		w.emit(o, true)
	}
}

// Cancel makes uploads fail, and Add and Close return soon. Any goroutine.
func (w *Writer) Cancel() { w.cancel() }

// Close ends the last object and waits for all uploads.
func (w *Writer) Close() {
	w.Flush()
	close(w.jobs)
	w.workers.Wait()
	w.cancel()
	w.staging = nil // nobody uses it any more
}

// EndTimeout is how long the end should wait before it cancels.
func (w *Writer) EndTimeout() time.Duration { return w.c.EndTimeout }

// Err is the first error, with its object and how many more there were; nil: there is none. Any goroutine.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed > 1 {
		return fmt.Errorf("%w (and %d more objects were not uploaded)", w.err, w.failed-1)
	}
	return w.err
}

// Where says where objects go: ENDPOINT/BUCKET/PREFIX_.
func (w *Writer) Where() string {
	return w.core.EndpointURL().String() + "/" + w.c.Bucket + "/" + w.c.Prefix + "_"
}
