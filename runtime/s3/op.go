package s3

import "sync"

// Op is the account of packets that were handed over together. Safe for concurrent use.
type Op struct {
	mu    sync.Mutex
	left  int
	state OpState
	err   error
}

// OpState is what became of them so far.
type OpState struct {
	Done              bool // nothing more will change
	Completed, Failed int  // packets
	Bytes             uint64
	Objects           int // uploaded that hold some of them
}

// NewOp makes an account of n packets.
func NewOp(n int) *Op { return &Op{left: n} }

// State reads it.
func (o *Op) State() OpState {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.state
	s.Done = o.left == 0
	return s
}

// Err is the first failure, with its object; nil when there is none.
func (o *Op) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// settle says what became of n packets: err nil, they are in an object.
func (o *Op) settle(n, bytes int, err error) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left -= n
	if err == nil {
		o.state.Completed += n
		o.state.Bytes += uint64(bytes)
		o.state.Objects++
		return
	}
	o.state.Failed += n
	if o.err == nil {
		o.err = err
	}
}
