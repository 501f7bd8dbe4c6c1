package bench

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Schema is the version of the report's JSON.
const Schema = 1

// Report is the outcome of a run.
type Report struct {
	Schema int      `json:"schema"`
	Host   Host     `json:"host"`
	Cases  []Result `json:"cases"`
}

// Result is the outcome of a case. Value is the median of ours, PeerValue that of the peer, Ratio the median of the
// pairs' ratios. Peer is null where it isn't installed or there is none to compare with, Value where the case was
// skipped or failed.
type Result struct {
	Name      string   `json:"name"`
	Value     *float64 `json:"value"`
	Unit      string   `json:"unit"`
	Better    string   `json:"better"` // higher or lower
	Peer      *string  `json:"peer"`
	PeerValue *float64 `json:"peer_value"`
	Ratio     *float64 `json:"ratio"`
	RatioMin  *float64 `json:"ratio_min,omitempty"`
	RatioMax  *float64 `json:"ratio_max,omitempty"`
	Pairs     []Pair   `json:"pairs,omitempty"`
	Figures   figures  `json:"figures,omitempty"`
	Note      string   `json:"note,omitempty"`
	Skipped   string   `json:"skipped,omitempty"`
	Error     string   `json:"error,omitempty"`

	length time.Duration // of the case
}

// Pair is one measurement of ours and of the peer, made one after the other.
type Pair struct {
	Value     float64  `json:"value"`
	PeerValue *float64 `json:"peer_value"`
}

// Failed reports whether a case failed; a skipped one has not.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Cases, func(c Result) bool { return c.Error != "" })
}

// JSON is the report as a document.
func (r *Report) JSON() ([]byte, error) {
	data, err := json.MarshalIndent(r, "", "  ")
	return append(data, '\n'), err
}

// add puts a sentence behind the note.
func (r *Result) add(note string) { r.Note = strings.TrimPrefix(r.Note+"; "+note, "; ") }

// compareWith names the peer.
func (r *Result) compareWith(peer string) { r.Peer = &peer }

// Heading is the host and the head of the table that Text makes rows of.
func (h Host) Heading() string {
	return fmt.Sprintf("%s, %d CPUs, %.1f GiB, %s; daqiri-run %s\n\n%-15s %14s %14s  %-16s\n", h.Model, h.CPUs,
		float64(h.MemoryBytes)/(1<<30), h.Kernel, h.Version, "case", "ours", "peer", "ours / peer")
}

// Text is the result in words: a row of the table, and lines with what else there is to say.
func (r Result) Text() string {
	var b strings.Builder
	switch {
	case r.Error != "":
		fmt.Fprintf(&b, "%-15s failed: %s\n", r.Name, r.Error)
		return b.String()
	case r.Skipped != "":
		fmt.Fprintf(&b, "%-15s skipped: %s\n", r.Name, r.Skipped)
		return b.String()
	}
	peer, ratio := "-", "-"
	if r.PeerValue != nil {
		peer = digits(*r.PeerValue)
	}
	if r.Ratio != nil {
		ratio = fmt.Sprintf("%.2f (%.2f to %.2f)", *r.Ratio, *r.RatioMin, *r.RatioMax)
	}
	fmt.Fprintf(&b, "%-15s %14s %14s  %-20s %s", r.Name, digits(*r.Value), peer, ratio, r.Unit)
	if r.Peer != nil {
		fmt.Fprintf(&b, ", peer: %s", *r.Peer)
	}
	b.WriteByte('\n')
	var more []string
	for _, name := range slices.Sorted(maps.Keys(r.Figures)) {
		more = append(more, name+" "+digits(r.Figures[name]))
	}
	for _, line := range []string{strings.Join(more, ", "), r.Note} {
		if line != "" {
			fmt.Fprintf(&b, "    %s\n", line)
		}
	}
	return b.String()
}

// digits writes a number with four significant digits.
func digits(v float64) string {
	if v >= 1000 || v <= -1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
