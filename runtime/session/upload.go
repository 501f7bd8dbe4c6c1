package session

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/s3"
)

// uploader is the consumer of an outlet: it copies packets to objects.
type uploader struct {
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

// newUploader returns an uploader; end must be called if it was started, and close otherwise.
func newUploader(c s3.Config, overwrite bool, text string) (*uploader, error) {
	u := &uploader{overwrite: overwrite, text: text, over: make(chan struct{})}
	var err error
	u.w, err = s3.New(c, u)
	return u, err
}

// start starts the upload of the bursts that the external writer st receives.
func (u *uploader) start(name string, st native.Stage) {
	u.name, u.st = name, st
	go u.take()
}

// close frees an uploader that was not started.
func (u *uploader) close() { u.w.Close() }

// where returns the destination of the objects.
func (u *uploader) where() string { return u.w.Where() }

// err returns the first error, or nil.
func (u *uploader) err() error { return u.w.Err() }

// check verifies that the store accepts objects.
func (u *uploader) check(name string) error {
	if err := u.w.Check(u.overwrite); err != nil {
		return fmt.Errorf("writer %s: %w", name, err)
	}
	return nil
}

// take copies bursts to objects until the outlet's end, and waits for their uploads.
func (u *uploader) take() {
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
func (u *uploader) add(b native.Burst, v *native.View, h *handed) {
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
func (u *uploader) bytes(v *native.View, i int, yield func([]byte) bool) {
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

// end waits until all taken packets are uploaded or the writer's end timeout expires. It is idempotent.
func (u *uploader) end() {
	u.once.Do(func() {
		u.st.End()
		t := time.AfterFunc(u.w.EndTimeout(), u.w.Cancel)
		<-u.over
		t.Stop()
	})
}

// endSoon ends the uploads in the background; the operation completes after the last one.
func (u *uploader) endSoon() (native.Op, error) {
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
	go u.end()
	return op, nil
}

// tell completes the operations that wait for the end.
func (u *uploader) tell() {
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

// give passes a burst of n packets to the external writer, outside of pipes. names is nil or holds names for this burst.
func (u *uploader) give(b native.Burst, n int, names *native.WriteNames) (op native.Op, err error) {
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
	if err := u.st.Give(b, tag); err != nil {
		u.ops.Delete(tag)
		op.Lost(n, err.Error()) // releases the worker's share of op
		op.Free()
		return op, err
	}
	return op, nil
}

// Uploaded counts an object.
func (u *uploader) Uploaded(packets, bytes int) {
	u.st.Out(packets, bytes)
	u.st.Note(native.ExtraObjects, 1)
}

// Lost counts lost packets by reason.
func (u *uploader) Lost(why error, packets int) {
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
func (u *uploader) Retried() { u.st.Note(native.ExtraRetries, 1) }

// Stalled counts the time spent waiting for staging memory.
func (u *uploader) Stalled(d time.Duration) { u.st.Note(native.ExtraStallNS, int64(d)) }

// Busy counts requests in progress.
func (u *uploader) Busy(n int) { u.st.Busy(n) }
