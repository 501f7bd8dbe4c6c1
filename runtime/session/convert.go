package session

import (
	"fmt"

	"github.com/daqiri/daqiri-run/native"
)

// KindConvert is the kind of a stage that converts the elements of payloads, packet by packet.
const KindConvert = "convert"

// ConvertOptions say where the payloads are that a convert stage converts, and to what.
type ConvertOptions struct {
	MemoryRegion      string // of the packets that it makes
	Data              DataTypes
	PayloadByteOffset int // from the packet's start, or with AtPayload from the innermost payload's
	AtPayload         bool
	Header, Length    string // as in ReorderOptions
	Fields            Fields
	Policy            Policy // when no buffer is free
}

// Convert makes a stage that makes packets whose payloads have elements of another type. What is in front of the payload stays.
func (s *Session) Convert(name string, o ConvertOptions) (*Stage, error) {
	region, err := s.Region(o.MemoryRegion)
	if err != nil {
		return nil, fmt.Errorf("convert %s: %w", name, err)
	}
	conf := native.ConvertConf{Region: region.native, Types: o.Data.native(), PayloadOffset: o.PayloadByteOffset, AtPayload: o.AtPayload,
		Policy: o.Policy}
	for text, to := range map[string]*[]native.Insn{o.Header: &conf.Header, o.Length: &conf.Length} {
		if text == "" {
			continue
		}
		if *to, _, err = compileNumber(text, o.Fields); err != nil {
			return nil, fmt.Errorf("convert %s: %w", name, err)
		}
	}
	st, err := s.stage(name, KindConvert, "", func(n string) (native.Stage, error) {
		return s.native.AddConvert(n, conf)
	})
	if err == nil {
		st.region = o.MemoryRegion
	}
	return st, err
}
