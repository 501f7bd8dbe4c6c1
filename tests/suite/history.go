package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/daqiri/daqiri-run/tests/levels"
)

// A history is how long steps and groups of tests took the last time, by name.
type history struct {
	file string
	mu   sync.Mutex
	took map[string]cost
	new  map[string]cost // of this process
}

// A cost is what something took: seconds by the clock, and of processors.
type cost struct{ Seconds, CPU float64 }

func readHistory() *history {
	h := &history{file: filepath.Join(levels.Shared(), "seconds.json"), took: map[string]cost{}, new: map[string]cost{}}
	h.read()
	return h
}

func (h *history) read() {
	if text, err := os.ReadFile(h.file); err == nil {
		_ = json.Unmarshal(text, &h.took) // what is unreadable is measured again
	}
}

// last is the time that name took before, or the given one.
func (h *history) last(name string, otherwise time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c, ok := h.took[name]; ok {
		return time.Duration(c.Seconds * float64(time.Second))
	}
	return otherwise
}

func (h *history) add(name string, took, cpu time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.new[name] = cost{took.Seconds(), cpu.Seconds()}
}

// save adds what is new to the file. Of two processes that do so at the same time, one may lose what it measured.
func (h *history) save() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.read()
	maps.Copy(h.took, h.new)
	text, err := json.MarshalIndent(h.took, "", " ")
	if err != nil {
		return
	}
	f, err := os.CreateTemp(filepath.Dir(h.file), "seconds-")
	if err != nil {
		return
	}
	_, err = f.Write(text)
	if f.Close() != nil || err != nil || os.Rename(f.Name(), h.file) != nil {
		_ = os.Remove(f.Name())
	}
}
