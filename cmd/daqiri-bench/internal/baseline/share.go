package baseline

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// Numbers of the protocol of shared streams (runtime/session/share/PROTOCOL.md) and of the block files that it refers to.
const (
	shareMessage   = 64 // bytes, without a text
	shareShape     = 2
	shareBlock     = 3
	shareRelease   = 4
	shareEnd       = 5
	blockFileBegin = 12 // offset of header_bytes in a block file
	blockHeader    = 24 // offset of block_header_bytes
	blockNumber    = 8  // offset of batch_id in the header of a block
)

// Lent counts what a reader of a shared stream got. Skipped counts the numbers that are absent between consecutive blocks: those that it missed, and
// those that the program dropped before it announced them.
type Lent struct {
	Blocks  uint64 `json:"blocks"`
	Missed  uint64 `json:"missed"`
	Skipped uint64 `json:"skipped"`
	Sum     uint64 `json:"sum"` // of the first bytes of all blocks
}

// RunShare reads the stream at a socket until its end: it takes each block, reads its number and its first byte, and releases it. It waits at most
// `wait` for the socket to exist.
func RunShare(path string, wait time.Duration) (Lent, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return Lent{}, fmt.Errorf("cannot create a socket: %w", err)
	}
	defer syscall.Close(fd)
	for until := time.Now().Add(wait); ; time.Sleep(time.Millisecond) {
		err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: path})
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED) || time.Now().After(until) {
			return Lent{}, fmt.Errorf("cannot attach to %s: %w", path, err)
		}
	}
	r := shareReader{fd: fd}
	defer r.unmap()
	p, rights := make([]byte, 4096), make([]byte, syscall.CmsgSpace(2*4))
	for {
		n, oobn, _, _, err := syscall.Recvmsg(fd, p, rights, syscall.MSG_CMSG_CLOEXEC)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || n < shareMessage {
			return r.got, fmt.Errorf("the stream %s ended without a reason: %w", path, errors.Join(err, fs.ErrClosed))
		}
		if over, err := r.take(p[:n], rights[:oobn]); over || err != nil {
			return r.got, err
		}
	}
}

// shareReader is the state of RunShare: the mapped region and headers of the current shape, and the counts.
type shareReader struct {
	fd              int
	region, headers []byte
	began           bool
	last            uint64 // number of the last block
	got             Lent
}

// take handles one message. It returns true after the last one.
func (r *shareReader) take(p, rights []byte) (over bool, err error) {
	le := binary.LittleEndian
	switch le.Uint32(p) {
	case shareShape:
		return false, r.remap(rights)
	case shareEnd:
		r.got.Missed += le.Uint64(p[24:])
		return true, nil
	case shareBlock:
		index, at := uint64(le.Uint32(p[4:])), le.Uint64(p[16:])
		header := uint64(le.Uint32(r.headers[blockFileBegin:])) + index*uint64(le.Uint32(r.headers[blockHeader:]))
		number := le.Uint64(r.headers[header+blockNumber:])
		if r.began {
			r.got.Skipped += number - r.last - 1
		}
		r.began, r.last = true, number
		r.got.Sum += uint64(r.region[at])
		r.got.Blocks++
		r.got.Missed += le.Uint64(p[24:])
		var release [shareMessage]byte
		le.PutUint32(release[:], shareRelease)
		copy(release[4:12], p[4:12]) // index and generation
		err := syscall.Sendmsg(r.fd, release[:], nil, nil, syscall.MSG_NOSIGNAL)
		if errors.Is(err, syscall.EPIPE) { // the last message waits to be read
			err = nil
		}
		return false, err
	}
	return false, nil
}

// remap maps the two files of a shape message, and closes their descriptors.
func (r *shareReader) remap(rights []byte) error {
	messages, err := syscall.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return fmt.Errorf("a shape without descriptors: %w", errors.Join(err, syscall.EBADMSG))
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 2 {
		return fmt.Errorf("a shape with %d descriptors: %w", len(fds), errors.Join(err, syscall.EBADMSG))
	}
	r.unmap()
	for i, to := range []*[]byte{&r.region, &r.headers} {
		var info syscall.Stat_t
		failed := syscall.Fstat(fds[i], &info)
		if failed == nil {
			*to, failed = syscall.Mmap(fds[i], 0, int(info.Size), syscall.PROT_READ, syscall.MAP_SHARED)
		}
		err = errors.Join(err, failed, syscall.Close(fds[i]))
	}
	return err
}

func (r *shareReader) unmap() {
	for _, m := range []*[]byte{&r.region, &r.headers} {
		if *m != nil {
			_ = syscall.Munmap(*m)
			*m = nil
		}
	}
}
