package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// readPcap counts a nanosecond pcap's packets and the numbers that are missing between them.
func readPcap(path string) (records, gaps uint64, err error) {
	const magic, headers = 0xa1b23c4d, 14 + 20 + 8
	file, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = file.Close() }()
	r := bufio.NewReaderSize(file, 1<<20)
	var head [24]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, 0, fmt.Errorf("no header: %w", err)
	}
	if m := binary.NativeEndian.Uint32(head[:]); m != magic {
		return 0, 0, fmt.Errorf("it begins with %#x", m)
	}
	for next := uint64(0); ; records++ {
		var rec [16]byte
		if _, err := io.ReadFull(r, rec[:]); errors.Is(err, io.EOF) {
			return records, gaps, nil
		} else if err != nil {
			return records, gaps, fmt.Errorf("packet %d is cut off: %w", records+1, err)
		}
		p := make([]byte, binary.NativeEndian.Uint32(rec[8:]))
		if _, err := io.ReadFull(r, p); err != nil || len(p) < headers+6 {
			return records, gaps, fmt.Errorf("packet %d of %d bytes is cut off: %w", records+1, len(p), err)
		}
		var b [8]byte
		copy(b[2:], p[headers:headers+6])
		n := binary.BigEndian.Uint64(b[:])
		if n < next {
			return records, gaps, fmt.Errorf("packet %d has the number %d, behind %d", records+1, n, next-1)
		}
		gaps, next = gaps+n-next, n+1
	}
}
