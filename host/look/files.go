package look

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/runtime/samples"
)

// blockMagic begins a block file, native/writer/BLOCKS.md.
const blockMagic = "DQBATCH\x00"

// blockHeader is the part of a block file's header that the samples need.
type blockHeader struct {
	Magic                                                [8]byte
	Version, HeaderBytes                                 uint32
	BlockBytes                                           uint64
	BlockHeaderBytes, Slots, SlotBytes, Cells, CellBytes uint32
	Dtype                                                uint32
	DtypeName                                            [16]byte
	PresentBits, PresentAt                               uint32
}

// leastHeader is the length of the fixed part of a block's header, in bytes.
const leastHeader = 64

// maxBlock limits the memory for a block of a damaged file, in bytes.
const maxBlock = 1 << 30

// readHeader reads the header of a block file and skips to the first block.
func readHeader(in io.Reader) (h blockHeader, err error) {
	if err = binary.Read(in, binary.LittleEndian, &h); err != nil {
		return h, fmt.Errorf("its header is incomplete: %w", err)
	}
	data := uint64(h.Slots) * uint64(h.SlotBytes)
	switch {
	case h.Version != 1:
		return h, fmt.Errorf("its version is %d (expected 1)", h.Version)
	case h.BlockBytes > maxBlock || uint64(h.BlockHeaderBytes)+data > h.BlockBytes || uint64(h.PresentAt)+uint64(h.PresentBits+7)/8 > uint64(h.BlockHeaderBytes),
		h.HeaderBytes < uint32(binary.Size(h)), h.BlockHeaderBytes < leastHeader, h.PresentBits == 0, data%uint64(max(1, h.PresentBits)) != 0:
		return h, errors.New("the sizes in its header do not fit each other")
	}
	if _, err = io.CopyN(io.Discard, in, int64(h.HeaderBytes)-int64(binary.Size(h))); err != nil {
		err = fmt.Errorf("its header is incomplete: %w", err)
	}
	return h, err
}

// blocks reads a block file. Present cells are consecutive, also across blocks that follow each other.
func (r *Result) blocks(ctx context.Context, f io.Reader) error {
	in := bufio.NewReaderSize(f, 1<<20)
	h, err := readHeader(in)
	if err != nil {
		return exit.Fail(exit.Storage, fmt.Errorf("cannot read the block file %s: %w", r.Source, err))
	}
	if name := strings.TrimRight(string(h.DtypeName[:]), "\x00"); r.Type == nil && name != "bytes" {
		if r.Type, err = samples.Parse(name); err != nil {
			return exit.Fail(exit.Storage, fmt.Errorf("cannot read the block file %s: %w", r.Source, err))
		}
	}
	if r.Type == nil {
		return errNoType
	}
	s := r.stream(nil)
	s.Numbered, r.container = true, "block"
	block := make([]byte, h.BlockBytes)
	for first, last := true, uint64(0); ctx.Err() == nil; first = false {
		if _, err := io.ReadFull(in, block); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil // the last block may be incomplete
			}
			return exit.Fail(exit.Storage, err)
		}
		r.Packets++
		ordinal := binary.LittleEndian.Uint64(block[16:])
		if err := s.block(h, block, !first && ordinal != last+1); err != nil {
			return exit.Fail(exit.Usage, fmt.Errorf("cannot read samples of %s: %w", r.Source, err))
		}
		last = ordinal
		if err := r.tick(); err != nil {
			return exit.Fail(exit.Internal, err)
		}
	}
	return nil
}

// block adds the present cells of a block.
func (s *Stream) block(h blockHeader, block []byte, apart bool) error {
	data := block[h.BlockHeaderBytes:][:h.Slots*h.SlotBytes]
	cell := len(data) / int(h.PresentBits)
	present := func(i int) bool { return block[int(h.PresentAt)+i/8]>>(i%8)&1 != 0 }
	if cell%s.of.Type.Unit() != 0 {
		return fmt.Errorf("a cell of %d bytes is not whole samples of %s, which are multiples of %d bytes", cell, s.of.Type, s.of.Type.Unit())
	}
	if s.Set == nil {
		s.beginWith(s.of.Type.Samples(len(data)))
	}
	if apart {
		s.Break()
	}
	s.Packets++
	for i := 0; i < int(h.PresentBits); {
		from, is := i, present(i)
		for i < int(h.PresentBits) && present(i) == is {
			i++
		}
		if n := s.of.Type.Samples((i - from) * cell); !is {
			s.Gap(uint64(n))
		} else if err := s.bytes(data[from*cell : i*cell]); err != nil {
			return err
		}
	}
	return nil
}

// bytes adds consecutive packed samples.
func (s *Stream) bytes(data []byte) (err error) {
	if s.scratch, err = s.of.Type.Append(s.scratch[:0], data); err == nil {
		s.Set.Add(s.scratch)
	}
	return err
}

// raw reads a file of samples.
func (r *Result) raw(ctx context.Context, f io.Reader) error {
	if r.Type == nil {
		return errNoType
	}
	if _, err := io.CopyN(io.Discard, f, int64(r.Offset)); err != nil && !errors.Is(err, io.EOF) {
		return exit.Fail(exit.Storage, err)
	}
	s, unit := r.stream(nil), r.Type.Unit()
	r.Packets, r.container = 1, "file"
	buffer := make([]byte, (1<<20)/unit*unit)
	for ctx.Err() == nil {
		n, err := io.ReadFull(f, buffer)
		whole := n / unit * unit
		if s.Set == nil {
			s.beginWith(r.Type.Samples(whole))
		}
		if err := r.tick(); err != nil {
			return exit.Fail(exit.Internal, err)
		}
		r.Rest = uint64(n - whole)
		if err := s.bytes(buffer[:whole]); err != nil {
			return exit.Fail(exit.Usage, err)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		} else if err != nil {
			return exit.Fail(exit.Storage, err)
		}
	}
	s.Packets = 1
	return nil
}
