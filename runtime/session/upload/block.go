package upload

import (
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/s3"
)

// block returns the framing of a reordered burst in an object, which has the format of the block files of write_blocks.
func (u *Uploader) block(b native.Burst, a *native.Aggregate) *s3.Block {
	header, padding := b.Block()
	return &s3.Block{
		Shape:  fmt.Sprint(a.Slots, a.SlotBytes, a.Cells, a.CellBytes, a.Dtype, a.Extra != nil),
		Header: header,
		Behind: make([]byte, padding),
		Start:  func(index uint64) []byte { return b.BlockFileHeader(u.name, u.text, index) },
	}
}

// maxPresent is the maximum size of a bitmap in metadata, which stores limit to 2 KB.
const maxPresent = 512

// aggregateMeta returns the metadata of an object that contains only the data of an aggregate.
func aggregateMeta(a *native.Aggregate) map[string]string {
	m := map[string]string{
		"batch-id": strconv.FormatUint(a.BatchID, 10), "slots": strconv.Itoa(a.Slots), "slot-bytes": strconv.Itoa(a.SlotBytes),
		"dtype": a.Dtype.String(), "cells": strconv.Itoa(a.Cells), "present-cells": strconv.Itoa(a.PresentCells),
	}
	if bytes := (a.Cells + 7) / 8; bytes <= maxPresent {
		present := make([]byte, bytes)
		for i := range present {
			present[i] = byte(a.PresentBits[i/8] >> (i % 8 * 8))
		}
		m["present"] = hex.EncodeToString(present) // bit i % 8 of byte i / 8: cell i is present
	}
	return m
}
