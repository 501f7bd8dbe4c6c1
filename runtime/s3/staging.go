package s3

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"io"
)

const chunkBytes = 32 << 10

// staging is the memory of one writer, as a list of free chunks.
type staging struct{ free chan []byte }

func newStaging(bytes int64) *staging {
	n := int(bytes / chunkBytes)
	s := &staging{make(chan []byte, n)}
	all := make([]byte, n*chunkBytes) // pages are allocated on first write
	for i := range n {
		s.free <- all[i*chunkBytes : i*chunkBytes : (i+1)*chunkBytes]
	}
	return s
}

// has reports whether a packet of so many bytes and an object's start fit without waiting.
func (s *staging) has(bytes int) bool { return len(s.free) >= bytes/chunkBytes+2 }

// body is the body of one request, a list of chunks.
type body struct {
	chunks [][]byte
	n      int64
	crc    uint32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// room returns the last chunk if it has free space, or nil if a new one is needed.
func (b *body) room() *[]byte {
	if k := len(b.chunks) - 1; k >= 0 && len(b.chunks[k]) < chunkBytes {
		return &b.chunks[k]
	}
	return nil
}

// append copies the part of data that fits into the chunk and returns the rest.
func (b *body) append(to *[]byte, data []byte) []byte {
	n := min(len(data), chunkBytes-len(*to))
	*to = append(*to, data[:n]...)
	b.crc = crc32.Update(b.crc, castagnoli, data[:n])
	b.n += int64(n)
	return data[n:]
}

// release returns the chunks to the staging memory.
func (b *body) release(s *staging) {
	for _, c := range b.chunks {
		s.free <- c[:0]
	}
	b.chunks = nil
}

// checksum returns the CRC-32C in S3's header format.
func (b *body) checksum() string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, b.crc))
}

func (b *body) md5() string {
	h := md5.New()
	for _, c := range b.chunks {
		h.Write(c)
	}
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// reader returns a reader of the body from its start.
func (b *body) reader() io.Reader { return &reader{chunks: b.chunks} }

type reader struct {
	chunks [][]byte
	at     int // offset in the first chunk
}

// Read copies bytes from one chunk.
func (r *reader) Read(p []byte) (int, error) {
	for len(r.chunks) > 0 && r.at == len(r.chunks[0]) {
		r.chunks, r.at = r.chunks[1:], 0
	}
	if len(r.chunks) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.chunks[0][r.at:])
	r.at += n
	return n, nil
}
