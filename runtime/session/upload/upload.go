// Package upload copies the bursts of a writer stage to objects of an S3 store.
package upload

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/s3"
)

// Uploader receives the bursts of an external writer and copies their packets to objects.
type Uploader struct {
	name      string
	text      string
	st        native.Stage
	w         *s3.Writer
	overwrite bool
	ops       sync.Map // *handed, by tag
	tags      atomic.Uint32
	over      chan struct{} // closed when all outcomes are reported
	once      sync.Once

	mu    sync.Mutex
	ended bool
	ends  []native.Op // operations that complete with the last upload
}

// handed is a burst passed by a task.
type handed struct {
	op    *upload
	names native.WriteNames
}

// New returns an uploader, which is ended by End if it was started, and by Close otherwise.
func New(c s3.Config, overwrite bool, text string) (*Uploader, error) {
	u := &Uploader{overwrite: overwrite, text: text, over: make(chan struct{})}
	var err error
	u.w, err = s3.New(c, u)
	return u, err
}

// Start starts the upload of the bursts that the external writer st receives.
func (u *Uploader) Start(name string, st native.Stage) {
	u.name, u.st = name, st
	go u.take()
}

// Close frees an uploader that was not started.
func (u *Uploader) Close() { u.w.Close() }

// Where returns the destination of the objects.
func (u *Uploader) Where() string { return u.w.Where() }

// Err returns the first error, or nil.
func (u *Uploader) Err() error { return u.w.Err() }

// Check verifies that the store accepts objects.
func (u *Uploader) Check(name string) error {
	if err := u.w.Check(u.overwrite); err != nil {
		return fmt.Errorf("writer %s: %w", name, err)
	}
	return nil
}

// take copies bursts to objects until the outlet's end, and waits for their uploads.
func (u *Uploader) take() {
	defer close(u.over) // the outlet may be freed after this
	defer u.tell()
	var v native.View
	for {
		b, tag, ok := u.st.Take(&v)
		if !ok {
			u.w.Close()
			return
		}
		var h *handed
		if tag > 0 {
			x, _ := u.ops.LoadAndDelete(tag)
			h, _ = x.(*handed)
		}
		u.add(b, &v, h)
		b.Unref()
	}
}

// add copies the packets of one burst. The object ends with a burst passed by a task.
func (u *Uploader) add(b native.Burst, v *native.View, h *handed) {
	times := v.RxTimes()
	at := 0
	p := s3.Packet{Bytes: func(yield func([]byte) bool) { u.bytes(v, at, yield) }}
	named := h != nil && h.names.Prefix != ""
	if a, ok := b.Aggregate(); ok && named {
		p.Meta = aggregateMeta(&a)
	} else if ok {
		p.Block = u.block(b, &a)
	}
	if h != nil {
		p.Op = h.op
	}
	for i := range int(v.N) {
		at, p.Len = i, 0
		for seg := range int(v.Segments) {
			p.Len += int(v.Lengths(seg)[i])
		}
		p.Time = times[i]
		if named {
			p.Key = fmt.Sprintf("%s_%d", h.names.Prefix, i)
			p.Skip = h.names.PacketDataOffset
		}
		u.w.Add(&p)
	}
	if h != nil {
		u.w.Flush()
	}
}

// bytes yields the bytes of packet i. Device-only segments are yielded in parts, until the GPU is lost.
func (u *Uploader) bytes(v *native.View, i int, yield func([]byte) bool) {
	for seg := range int(v.Segments) {
		if v.DeviceOnly>>seg&1 == 0 {
			if !yield(v.Packet(seg, i)) {
				return
			}
			continue
		}
		for at, n := 0, int(v.Lengths(seg)[i]); at < n; {
			part := u.st.Bytes(seg, i, at, n-at)
			if at += len(part); part == nil || !yield(part) {
				return
			}
		}
	}
}

// End waits until all taken packets are uploaded or the writer's end timeout expires. It is idempotent.
func (u *Uploader) End() {
	u.once.Do(func() {
		u.st.End()
		t := time.AfterFunc(u.w.EndTimeout(), u.w.Cancel)
		<-u.over
		t.Stop()
	})
}

// EndSoon ends the uploads in the background; the operation completes after the last one.
func (u *Uploader) EndSoon() (native.Op, error) {
	op, err := native.NewOp(1)
	if err != nil {
		return op, err
	}
	u.mu.Lock()
	if u.ended {
		op.OK(1, 0)
	} else {
		u.Busy(1) // virtual time stands still meanwhile
		u.ends = append(u.ends, op)
	}
	u.mu.Unlock()
	go u.End()
	return op, nil
}

// tell completes the operations that wait for the end.
func (u *Uploader) tell() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	for _, op := range u.ends {
		op.OK(1, 0)
		u.Busy(-1)
	}
}

// upload receives the outcome of a burst's packets.
type upload struct{ native.Op }

// Lost records packets that are in no object.
func (u *upload) Lost(n int, err error) { u.Op.Lost(n, err.Error()) }

// Put passes a burst of n packets to the external writer, outside of pipes. names is nil or holds names for this burst.
func (u *Uploader) Put(b native.Burst, n int, names *native.WriteNames) (op native.Op, err error) {
	if names != nil && names.Comment != "" {
		return op, native.ErrInvalid
	}
	if op, err = native.NewOp(n); err != nil {
		return op, err
	}
	h := &handed{op: &upload{op}}
	if names != nil {
		h.names = *names
	}
	if n == 0 {
		return op, nil
	}
	tag := u.tags.Add(1)
	if tag == 0 {
		tag = u.tags.Add(1)
	}
	u.ops.Store(tag, h)
	if err := u.st.Put(b, tag); err != nil {
		u.ops.Delete(tag)
		op.Lost(n, err.Error()) // releases the worker's share of op
		op.Free()
		return op, err
	}
	return op, nil
}

// Uploaded counts an object.
func (u *Uploader) Uploaded(packets, bytes int) {
	u.st.Out(packets, bytes)
	u.st.Note(native.ExtraObjects, 1)
}

// Lost counts lost packets by reason.
func (u *Uploader) Lost(why error, packets int) {
	reason := native.DropWriteError
	switch {
	case errors.Is(why, s3.ErrBehind):
		reason = native.DropBehind
	case errors.Is(why, s3.ErrDevice):
		reason = native.DropDeviceLost
	}
	u.st.Lost(reason, packets)
}

// Retried counts a repeated request.
func (u *Uploader) Retried() { u.st.Note(native.ExtraRetries, 1) }

// Stalled counts the time spent waiting for staging memory.
func (u *Uploader) Stalled(d time.Duration) { u.st.Note(native.ExtraStallNS, int64(d)) }

// Busy counts requests in progress.
func (u *Uploader) Busy(n int) { u.st.Busy(n) }
