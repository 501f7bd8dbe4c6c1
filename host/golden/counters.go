package golden

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"os"
	"slices"
	"strings"
)

// maxCounterDiffs is the maximum number of differing counters shown.
const maxCounterDiffs = 50

// compareCounters compares the keys in NAME.counters with the summary of the script's run.
func compareCounters(c testCase, want expectation, box sandbox) []problem {
	golden, err := decodeJSON(want.counters)
	if err != nil {
		return []problem{{title: fmt.Sprintf("%s.counters: %v", c.base, err)}}
	}
	got, err := readSummary(box)
	if err != nil {
		return []problem{{title: err.Error()}}
	}
	diffs := diffJSON("", golden, got)
	if len(diffs) == 0 {
		return nil
	}
	title := fmt.Sprintf("%d counters differ", len(diffs))
	if len(diffs) > maxCounterDiffs {
		diffs = append(diffs[:maxCounterDiffs], fmt.Sprintf("… %d more", len(diffs)-maxCounterDiffs))
	}
	return []problem{{title, "counters:\n" + indent(strings.Join(diffs, "\n"), "  ")}}
}

func readSummary(box sandbox) (any, error) {
	data, err := os.ReadFile(box.summary)
	if os.IsNotExist(err) {
		return nil, errors.New("wrote no summary to compare counters with")
	}
	if err != nil {
		return nil, err
	}
	summary, err := decodeJSON(data)
	if err != nil {
		return nil, fmt.Errorf("summary: %w", err)
	}
	return summary, nil
}

// decodeJSON keeps numbers as text, because a counter may exceed a float's precision.
func decodeJSON(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

// diffJSON lists the paths at which got lacks a value of want or differs from it. Objects may have more keys than in want; arrays must have the
// same length.
func diffJSON(path string, want, got any) []string {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			break
		}
		var diffs []string
		for _, key := range slices.Sorted(maps.Keys(want)) {
			value, found := object[key]
			if !found {
				diffs = append(diffs, fmt.Sprintf("%s: missing, want %s", join(path, key), compact(want[key])))
				continue
			}
			diffs = append(diffs, diffJSON(join(path, key), want[key], value)...)
		}
		return diffs
	case []any:
		array, ok := got.([]any)
		if !ok || len(array) != len(want) {
			break
		}
		var diffs []string
		for i := range want {
			diffs = append(diffs, diffJSON(fmt.Sprintf("%s[%d]", path, i), want[i], array[i])...)
		}
		return diffs
	default:
		if sameScalar(want, got) {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s: %s, want %s", orRoot(path), compact(got), compact(want))}
}

// sameScalar compares numbers by value (1e3 equals 1000) and other values exactly.
func sameScalar(want, got any) bool {
	a, isNumber := want.(json.Number)
	b, isNumberToo := got.(json.Number)
	if !isNumber || !isNumberToo {
		return compact(want) == compact(got)
	}
	if a == b {
		return true
	}
	x, okX := new(big.Float).SetString(a.String())
	y, okY := new(big.Float).SetString(b.String())
	return okX && okY && x.Cmp(y) == 0
}

// project returns the part of got that has the shape of want, which an update writes.
func project(want, got any) any {
	wantObject, ok := want.(map[string]any)
	gotObject, okToo := got.(map[string]any)
	if ok && okToo {
		out := map[string]any{}
		for key, value := range wantObject {
			if found, ok := gotObject[key]; ok {
				out[key] = project(value, found)
			}
		}
		return out
	}
	wantArray, ok := want.([]any)
	gotArray, okToo := got.([]any)
	if ok && okToo && len(wantArray) == len(gotArray) {
		out := make([]any, len(gotArray))
		for i := range gotArray {
			out[i] = project(wantArray[i], gotArray[i])
		}
		return out
	}
	return got
}

func compact(v any) string {
	data, _ := json.Marshal(v) // decoded from JSON: marshals without error
	return string(data)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func orRoot(path string) string {
	if path == "" {
		return "(the whole summary)"
	}
	return path
}

// choice selects keys of objects, also of objects in lists; nil: the whole value.
type choice map[string]choice

// counted is the selection for an empty object: counts that are equal in every run, without times, rates, paths, the number of bursts and process
// figures.
var counted = choice{"exit_code": nil, "cause": nil, "sessions": {"name": nil, "imbalance": nil, "ledger": {"metrics": nil, "lines": {
	"kind": nil, "name": nil, "queue": nil, "queue_id": nil, "in": nil, "in_bytes": nil, "out": nil, "out_bytes": nil, "held": nil,
	"dropped": nil, "flows": nil}}}}

// of returns the selected part of a JSON value.
func (c choice) of(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if c == nil {
			break
		}
		out := map[string]any{}
		for key, inner := range c {
			if found, ok := v[key]; ok {
				out[key] = inner.of(found)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = c.of(v[i])
		}
		return out
	}
	return value
}
