package share

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"syscall"
)

// version is the version of the protocol.
const version = 1

// messageBytes is the length of a message without its JSON text.
const messageBytes = 64

// Kinds of message.
const (
	kindHello   = 1 // program: JSON text
	kindShape   = 2 // program: the descriptors of the region and of the headers; before the first block of each shape
	kindBlock   = 3 // program
	kindRelease = 4 // reader
	kindEnd     = 5 // program: JSON text; it sends nothing more
)

// hello is the text of the first message.
type hello struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	Lend    int    `json:"lend"` // blocks that a reader may have at a time
}

// ended is the text of the last message.
type ended struct {
	Reason string `json:"reason"`
}

// block contains the numbers of a block message; its header has the others.
type block struct {
	index, generation uint32
	data              uint64 // offset in the region
	missed            uint64 // blocks not announced to the reader since the last message
}

func (b block) bytes() []byte {
	p := make([]byte, messageBytes)
	binary.LittleEndian.PutUint32(p, kindBlock)
	binary.LittleEndian.PutUint32(p[4:], b.index)
	binary.LittleEndian.PutUint32(p[8:], b.generation)
	binary.LittleEndian.PutUint64(p[16:], b.data)
	binary.LittleEndian.PutUint64(p[24:], b.missed)
	return p
}

// described returns a shape message.
func described() []byte {
	p := make([]byte, messageBytes)
	binary.LittleEndian.PutUint32(p, kindShape)
	return p
}

// withText returns a message with a JSON text behind it.
func withText(kind uint32, text any) []byte {
	p := make([]byte, messageBytes)
	words, _ := json.Marshal(text) // marshals strings and numbers
	binary.LittleEndian.PutUint32(p, kind)
	binary.LittleEndian.PutUint32(p[4:], uint32(len(words)))
	return append(p, words...)
}

// end returns the last message to a reader, which missed so many blocks since the message before.
func end(reason string, missed int) []byte {
	p := withText(kindEnd, ended{reason})
	binary.LittleEndian.PutUint64(p[24:], uint64(missed))
	return p
}

// released parses a release; ok is false for any other message.
func released(p []byte) (index, generation uint32, ok bool) {
	if len(p) != messageBytes || binary.LittleEndian.Uint32(p) != kindRelease {
		return 0, 0, false
	}
	return binary.LittleEndian.Uint32(p[4:]), binary.LittleEndian.Uint32(p[8:]), true
}

// send sends a message without blocking, with descriptors of the files. EAGAIN: the peer does not read.
func send(raw syscall.RawConn, p []byte, files ...*os.File) (err error) {
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = syscall.UnixRights(fds...)
	}
	sent := raw.Write(func(fd uintptr) bool {
		_, err = syscall.SendmsgN(int(fd), p, rights, nil, syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL)
		return true
	})
	if sent != nil {
		return sent
	}
	return err
}

// drain discards what the peer has sent, and lets it send no more. A connection that is closed with unread messages would report an error to the peer
// in place of the last messages to it.
func drain(raw syscall.RawConn) {
	_ = raw.Control(func(fd uintptr) {
		if syscall.Shutdown(int(fd), syscall.SHUT_RD) != nil {
			return
		}
		var p [messageBytes]byte
		for n := 1; n > 0; {
			n, _, _ = syscall.Recvfrom(int(fd), p[:], syscall.MSG_DONTWAIT)
		}
	})
}
