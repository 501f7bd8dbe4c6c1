package session

import (
	"fmt"

	"github.com/daqiri/daqiri-run/native"
)

// KindConvert is the kind of a stage that converts the payload elements of single packets.
const KindConvert = "convert"

// ConvertOptions describes the position of payloads and their conversion.
type ConvertOptions struct {
	MemoryRegion      string // region of the output packets
	Data              DataTypes
	PayloadByteOffset int // relative to the packet, or with AtPayload to the innermost payload
	AtPayload         bool
	Header, Length    string // as in ReorderOptions
	Fields            Fields
	Policy            Policy // if no buffer is free
}

// Convert creates a stage that outputs packets with converted payload elements. Bytes before the payload are unchanged.
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
