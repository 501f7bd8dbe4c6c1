package session

import (
	"math"
	"runtime"

	"github.com/daqiri/daqiri-run/native"
)

// Vary is a field of a template that changes from packet to packet.
type Vary struct {
	Field            Field
	Random           bool   // anything in Start..Max; else Start, Start+Step, …, from Max on to Start
	Toggle           bool   // Start, and Start with the bits of Step turned, by turns
	Start, Step, Max uint64 // Max 0: none; the field's largest value, from which it goes on to 0
	Every            uint64 // packets with the same value, one after the other; 0: 1
}

// TemplateConfig describes a packet to send many times.
type TemplateConfig struct {
	Packet    []byte
	Vary      []Vary
	Checksums bool  // set those of IPv4, UDP and TCP in each packet
	Seed      int64 // of random fields
}

// Template is a packet to send many times, in its session.
type Template struct {
	s      *Session
	native native.Template // goes with the last of its Template and the queues that send it
	length int
}

// Len is the length of the template's packets.
func (t *Template) Len() int { return t.length }

// Template makes a template.
func (s *Session) Template(c TemplateConfig) (*Template, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	vary := make([]native.Vary, len(c.Vary))
	for i, v := range c.Vary {
		kind := native.VaryInc
		if v.Random {
			kind = native.VaryRandom
		}
		if v.Toggle {
			kind = native.VaryToggle
		}
		if v.Max == 0 {
			v.Max = math.MaxUint64
		}
		vary[i] = native.Vary{Field: v.Field, Kind: kind, Start: v.Start, Step: v.Step, Max: v.Max, Every: v.Every}
	}
	t, err := native.NewTemplate(c.Packet, vary, c.Checksums, c.Seed)
	if err != nil {
		return nil, within("template", err)
	}
	tpl := &Template{s, t, len(c.Packet)}
	runtime.AddCleanup(tpl, native.Template.Free, t)
	return tpl, nil
}
