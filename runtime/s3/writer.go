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

// partBytes is the maximum size of a request. A larger object is uploaded in parts, starting when the first part is full.
const partBytes = 8 << 20

// Account receives the outcome of packets, exactly once for each. It is called from any goroutine.
type Account interface {
	Uploaded(packets, bytes int) // one stored object
	Lost(why error, packets int) // ErrBehind, ErrDevice, or the store's error
	Retried()
	Stalled(time.Duration) // the consumer waited for staging memory
	Busy(n int)            // change of the number of requests in progress
}

// NoTime is the Time of a packet without a receive time.
const NoTime int64 = math.MinInt64

// Packet is a packet to upload.
type Packet struct {
	Len   int              // bytes
	Bytes iter.Seq[[]byte] // parts, each valid until the next; they end early if their device is lost
	Time  int64            // receive time, ns; NoTime: none
	Key   string           // name of a separate object; empty: the writer's next object
	Skip  int              // with a Key: bytes skipped at the start, instead of the configured number
	Meta  map[string]string
	Op    Op     // may be nil
	Block *Block // framing of a block; nil: a plain packet
}

// Block holds what precedes and follows a packet's bytes in an object that contains only blocks of one shape.
type Block struct {
	Shape          string // common to all blocks of an object
	Header, Behind []byte
	Start          func(index uint64) []byte // returns the object's first bytes
}

// Writer fills objects and uploads them. Add, Flush and Close must be called by one goroutine.
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
	cur     *object // object being filled; nil: none
	next    uint64  // index of the next object

	mu     sync.Mutex
	broken error // permanent error that prevents further uploads
	err    error // first error
	failed int   // number of failed objects
}

// New returns a writer. It sends no request to the store.
func New(c Config, account Account) (*Writer, error) {
	core, keys, err := c.Client()
	if err != nil {
		return nil, err
	}
	w := &Writer{c: c, core: core, keys: keys, account: account, staging: newStaging(c.Staging)}
	w.jobs = make(chan job, cap(w.staging.free)) // a job has at least one chunk, so sending never blocks
	w.ctx, w.cancel = context.WithCancel(context.Background())
	for range c.Uploads {
		w.workers.Go(w.work)
	}
	return w, nil
}

// Add copies a packet into the object being filled.
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

// copy adds the packet's bytes after the first skip to o, with the framing of a block.
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

// refusal returns the error with which a packet must be dropped, or nil.
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

// object returns the object that the packet belongs to.
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

// fill copies data into o, and queues each full part for upload when more data follows.
func (w *Writer) fill(o *object, data []byte) {
	for len(data) > 0 {
		if o.fill.n == partBytes {
			w.emit(o, false)
		}
		to := o.fill.room()
		if to == nil {
			c := w.chunk()
			if c == nil { // canceled meanwhile
				o.fail(w.ctx.Err())
				return
			}
			o.fill.chunks = append(o.fill.chunks, c)
			to = o.fill.room()
		}
		data = o.fill.append(to, data)
	}
}

// chunk takes a chunk of staging memory, waiting for one if necessary. It returns nil if the writer is canceled.
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

// Flush ends the object being filled.
func (w *Writer) Flush() {
	if o := w.cur; o != nil {
		w.cur = nil
		if len(o.fill.chunks) == 0 { // only empty packets: a job needs a chunk
			if c := w.chunk(); c != nil {
				o.fill.chunks = append(o.fill.chunks, c)
			}
		}
		w.emit(o, true)
	}
}

// Cancel makes uploads fail, so that Add and Close return soon. It may be called from any goroutine.
func (w *Writer) Cancel() { w.cancel() }

// Close ends the last object and waits for all uploads.
func (w *Writer) Close() {
	w.Flush()
	close(w.jobs)
	w.workers.Wait()
	w.cancel()
	w.staging = nil // no longer in use
}

// EndTimeout returns the time to wait in Close before Cancel is called.
func (w *Writer) EndTimeout() time.Duration { return w.c.EndTimeout }

// Err returns the first error with its object and the number of further failed objects, or nil. It may be called by any goroutine.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed > 1 {
		return fmt.Errorf("%w (and %d more objects were not uploaded)", w.err, w.failed-1)
	}
	return w.err
}

// Where returns the destination of objects: ENDPOINT/BUCKET/PREFIX_.
func (w *Writer) Where() string {
	return w.core.EndpointURL().String() + "/" + w.c.Bucket + "/" + w.c.Prefix + "_"
}
