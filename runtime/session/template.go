package session

import (
	"math"
	"runtime"

	"github.com/daqiri/daqiri-run/native"
)

// Vary is a field of a template that changes from packet to packet.
type Vary struct {
	Field            Field
	Random           bool   // random in Start..Max; else Start, Start+Step, ..., and after Max again Start
	Toggle           bool   // alternates between Start and Start XOR Step
	Start, Step, Max uint64 // Max 0: the field's largest value, followed by 0
	Every            uint64 // number of consecutive packets with the same value; 0: 1
}

// TemplateConfig describes a packet to send repeatedly.
type TemplateConfig struct {
	Packet    []byte
	Vary      []Vary
	Checksums bool  // compute IPv4, UDP and TCP checksums of each packet
	Seed      int64 // seed of random fields
}

// Template is a packet to send repeatedly, in its session.
type Template struct {
	s      *Session
	native native.Template // freed with the last reference by Template and queues
	length int
}

// Len returns the length of the template's packets.
func (t *Template) Len() int { return t.length }

// Template creates a template.
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
