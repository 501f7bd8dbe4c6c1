package share

import (
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/listen"
)

// reader is a connected process. The lock of its share protects it.
type reader struct {
	s              *Share
	raw            syscall.RawConn
	conn           *listen.Conn
	number, pid    int
	has            map[uint32]uint32 // generations of its blocks, by index
	blocks, missed int
	unsaid         int  // of missed: not reported to the reader yet
	shapeNo        int  // of the last shape that it got
	slow           bool // it released nothing within the timeout of a wait
}

// serve handles one connection.
func (s *Share) serve(c *listen.Conn, unix *net.UnixConn) {
	r, err := s.admit(c, unix)
	if err != nil {
		if raw, failed := unix.SyscallConn(); failed == nil {
			_ = send(raw, end(err.Error(), 0))
		}
		s.Log("warn", fmt.Sprintf("share %s: a reader was refused: %v", s.name, err), nil)
		return
	}
	p := make([]byte, messageBytes+1)
	for {
		n, err := c.Read(p)
		if err != nil || n == 0 {
			s.leave(r, "info", "it disconnected")
			return
		}
		if why := r.take(p[:n]); why != "" {
			s.leave(r, "warn", why)
			return
		}
	}
}

// admit registers a connection as a reader and sends it the first message.
func (s *Share) admit(c *listen.Conn, unix *net.UnixConn) (*reader, error) {
	raw, err := unix.SyscallConn()
	if err != nil {
		return nil, err
	}
	pid, uid, err := credentials(raw)
	if err != nil {
		return nil, err
	}
	if uid != os.Getuid() && uid != 0 && s.Mode&0o066 == 0 {
		return nil, fmt.Errorf("it belongs to user %d: the option mode permits other users", uid)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return nil, fmt.Errorf("the run has ended")
	case len(s.readers) == s.Readers:
		return nil, fmt.Errorf("the stream has %d readers, the most that the option readers permits", s.Readers)
	}
	s.last++
	r := &reader{s: s, raw: raw, conn: c, number: s.last, pid: pid, has: map[uint32]uint32{}}
	if err := send(raw, withText(kindHello, hello{version, s.name, os.Getpid(), s.Lend})); err != nil {
		return nil, err
	}
	c.Trust()
	s.readers[r] = true
	if s.started {
		s.st.Note(native.ExtraReaders, 1)
	}
	s.Log("info", fmt.Sprintf("share %s: reader attached", s.name), map[string]any{"reader": r.number, "pid": pid})
	return r, nil
}

// credentials returns the process and the user at the other end.
func credentials(raw syscall.RawConn) (pid, uid int, err error) {
	var cred *syscall.Ucred
	failed := raw.Control(func(fd uintptr) {
		cred, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if failed != nil {
		return 0, 0, failed
	}
	if err != nil {
		return 0, 0, err
	}
	return int(cred.Pid), int(cred.Uid), nil
}

// take handles a message of the reader. It returns why the connection must end, or "".
func (r *reader) take(p []byte) string {
	index, generation, ok := released(p)
	if !ok {
		return fmt.Sprintf("it sent an invalid message of %d bytes", len(p))
	}
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if has, there := r.has[index]; !there || has != generation {
		return "it released a block that it does not have"
	}
	delete(r.has, index)
	r.slow = false
	r.s.release(index)
	r.s.free.Broadcast()
	return ""
}

// miss counts a block that the reader does not get.
func (r *reader) miss() {
	r.missed++
	r.unsaid++
	r.s.st.Note(native.ExtraMissed, 1)
}

// announce sends a block message, and its shape if that is new. It returns false if the reader does not read its messages: its connection ends.
func (r *reader) announce(index int, l *lease, data uint64) bool {
	var err error
	if r.shapeNo != r.s.shapeNo {
		err = send(r.raw, described(), r.s.shape.region, r.s.lent)
		r.shapeNo = r.s.shapeNo
	}
	if err == nil {
		err = send(r.raw, block{uint32(index), l.generation, data, uint64(r.unsaid)}.bytes())
	}
	if err != nil {
		r.s.detach(r, "warn", fmt.Sprintf("it does not read its messages: %v", err))
		return false
	}
	r.has[uint32(index)] = l.generation
	r.unsaid = 0
	r.blocks++
	r.s.st.Note(native.ExtraLent, 1)
	return true
}

func (s *Share) leave(r *reader, level, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.detach(r, level, why)
}

// detach ends all leases of a reader and its connection. Further calls have no effect.
func (s *Share) detach(r *reader, level, why string) {
	if !s.readers[r] {
		return
	}
	delete(s.readers, r)
	had := len(r.has)
	for index := range r.has {
		s.release(index)
	}
	r.has = nil // messages that it sent before release nothing
	drain(r.raw)
	_ = r.conn.Close()
	s.free.Broadcast()
	s.Log(level, fmt.Sprintf("share %s: reader detached", s.name),
		map[string]any{"reader": r.number, "pid": r.pid, "blocks": r.blocks, "missed": r.missed, "lent": had, "reason": why})
}
