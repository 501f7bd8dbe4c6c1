package stats

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Decoders of the output of MarshalJSON, in which values of 0 are omitted.

// UnmarshalJSON decodes an object of counters, in its order.
func (c *Counts) UnmarshalJSON(data []byte) error {
	return eachKey(data, func(name string, d *json.Decoder) error {
		x := Count{Name: name}
		err := d.Decode(&x.N)
		*c = append(*c, x)
		return err
	})
}

// UnmarshalJSON decodes an object of histograms. Titles are not part of the JSON form and stay empty.
func (list *Histograms) UnmarshalJSON(data []byte) error {
	return eachKey(data, func(name string, d *json.Decoder) error {
		var in struct {
			Unit    string
			Sum     uint64
			Buckets [][2]uint64
		}
		err := d.Decode(&in)
		h := &Histogram{Name: name, Unit: in.Unit, Sum: in.Sum}
		for _, b := range in.Buckets {
			h.Buckets = append(h.Buckets, Bucket{b[0], b[1]})
		}
		*list = append(*list, h)
		return err
	})
}

// UnmarshalJSON decodes a ledger of this schema.
func (l *Ledger) UnmarshalJSON(data []byte) error {
	var in struct {
		Schema      int
		Clock       string
		StartNS     int64 `json:"start_ns"`
		Seconds     float64
		Lines       []Line
		QueueErrors []QueueError `json:"faults"`
		Metrics     map[string]float64
		Process     Process
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	if in.Schema != Schema {
		return fmt.Errorf("its ledger has schema %d, and this version reads %d", in.Schema, Schema)
	}
	l.Clock, l.StartNS, l.EndNS = in.Clock, in.StartNS, in.StartNS+int64(in.Seconds*1e9+0.5)
	l.Lines, l.QueueErrors, l.Metrics, l.Process = in.Lines, in.QueueErrors, in.Metrics, in.Process
	return nil
}

// eachKey calls fn with each key of an object; fn decodes its value.
func eachKey(data []byte, fn func(name string, d *json.Decoder) error) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("an object expected, got %.20s", data)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		if err := fn(key.(string), d); err != nil { // key is a string if Token succeeded
			return err
		}
	}
	return nil
}
