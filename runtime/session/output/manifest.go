// Package output holds what a writer of files leaves in its folders beside them: the claim of its names while it runs, and its manifest.
package output

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/stats"
	"github.com/daqiri/daqiri-run/runtime/textfile"
)

// schema is the version of the manifest's format.
const schema = 1

// Manifest is the content of DIR/PREFIX.manifest.json: a description of a writer's files and their origin. It is written when the session starts,
// with state unfinished, and again at its end.
type Manifest struct {
	Schema        int           `json:"schema"`
	State         string        `json:"state"`            // unfinished or finished
	Reason        string        `json:"reason,omitempty"` // reason of the end
	Error         string        `json:"error,omitempty"`  // first error of the writer
	Version       string        `json:"version"`
	Script        string        `json:"script,omitempty"`
	ScriptSHA256  string        `json:"script_sha256,omitempty"`
	Host          Host          `json:"host"`
	Clock         string        `json:"clock"`   // clock of all times except written
	Started       time.Time     `json:"started"` // time at which packets began to move
	Ended         *time.Time    `json:"ended"`
	Written       time.Time     `json:"written"` // wall clock
	Writer        Writer        `json:"writer"`
	Files         []File        `json:"files"`                    // files, except those per packet or burst
	LeftOut       int           `json:"files_left_out,omitempty"` // number of files omitted because the disk was full
	Ledger        *stats.Ledger `json:"ledger"`
	Configuration *spec.Plan    `json:"configuration"`
}

// Host describes the machine that wrote the files.
type Host struct {
	Name   string `json:"name"`
	Kernel string `json:"kernel"`
	Arch   string `json:"arch"`
	CPUs   int    `json:"cpus"`
}

// Writer holds the options given by the script.
type Writer struct {
	Name          string   `json:"name"`
	Kind          string   `json:"kind"`
	Dirs          []string `json:"dirs"`
	Prefix        string   `json:"prefix"`
	Policy        string   `json:"policy"`
	Format        string   `json:"format,omitempty"`    // capture format
	Precision     string   `json:"precision,omitempty"` // precision of times in captures
	Snaplen       int      `json:"snaplen,omitempty"`
	Append        bool     `json:"append,omitempty"`
	Overwrite     bool     `json:"overwrite,omitempty"`
	Text          string   `json:"text,omitempty"` // comment of a capture, or text in the headers of blocks
	DataOffset    int      `json:"packet_data_offset,omitempty"`
	RotateBytes   uint64   `json:"rotate_bytes,omitempty"`
	RotatePackets uint64   `json:"rotate_packets,omitempty"`
	RotateSeconds float64  `json:"rotate_seconds,omitempty"`
	Quota         uint64   `json:"quota,omitempty"`
	DeleteOldest  bool     `json:"delete_oldest,omitempty"`
	StopWhenFull  bool     `json:"stop_when_full,omitempty"`
	Naming        string   `json:"naming,omitempty"`     // naming scheme of files that are not listed: one per packet or burst
	FileCount     uint64   `json:"file_count,omitempty"` // number of these files
}

// File is one file; its figures are set once it is closed.
type File struct {
	Path       string     `json:"path"`
	PathBytes  []byte     `json:"path_base64,omitempty"` // if path is not valid UTF-8, which JSON requires
	Bytes      uint64     `json:"bytes"`
	Packets    uint64     `json:"packets"`
	CRC32C     string     `json:"crc32c,omitempty"` // eight hexadecimal digits
	First      *time.Time `json:"first,omitempty"`  // receive times
	Last       *time.Time `json:"last,omitempty"`
	FirstBatch *uint64    `json:"first_batch,omitempty"`
	LastBatch  *uint64    `json:"last_batch,omitempty"`
	Deleted    bool       `json:"deleted,omitempty"`
}

// NewFile returns a writer's file; batches: it has ids of batches.
func NewFile(f *native.WriterFile, batches bool) File {
	m := File{Path: f.Path, Bytes: f.Bytes, Packets: f.Packets, Deleted: f.Deleted}
	if !utf8.ValidString(f.Path) {
		m.PathBytes = []byte(f.Path)
	}
	if f.Closed {
		m.CRC32C = fmt.Sprintf("%08x", f.CRC32C)
	}
	if f.Closed && f.Packets > 0 {
		if first, last := instant(f.FirstNS), instant(f.LastNS); f.FirstNS != native.NoTime {
			m.First, m.Last = &first, &last
		}
		if batches {
			m.FirstBatch, m.LastBatch = &f.FirstBatch, &f.LastBatch
		}
	}
	return m
}

// NewManifest returns the part common to the manifests of all writers of a session with the ledger l, in state unfinished. text is the content of a
// script without a file.
func NewManifest(version, script, text string, l *stats.Ledger, cfg *spec.Config) *Manifest {
	m := &Manifest{Schema: schema, State: "unfinished", Version: version, Script: script,
		Host: readHost(), Clock: l.Clock, Started: instant(l.StartNS), Written: time.Now().UTC(), Ledger: l,
		Configuration: spec.Inspect(cfg)}
	content, err := []byte(text), error(nil)
	if len(content) == 0 {
		content, err = textfile.Read(script)
	}
	if err == nil {
		m.ScriptSHA256 = fmt.Sprintf("%x", sha256.Sum256(content))
	}
	return m
}

// Finish sets the state finished, with the reason of the end.
func (m *Manifest) Finish(reason string) {
	ended := instant(m.Ledger.EndNS)
	m.State, m.Ended, m.Reason = "finished", &ended, reason
}

// instant returns a time in ns since the epoch.
func instant(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// sameName reports whether two paths have the same name in the same folder, regardless of spelling.
func sameName(a, b string) bool {
	x, err := os.Stat(filepath.Dir(a))
	y, other := os.Stat(filepath.Dir(b))
	return filepath.Base(a) == filepath.Base(b) && (a == b || err == nil && other == nil && os.SameFile(x, y))
}

func readHost() Host {
	h := Host{Arch: runtime.GOARCH, CPUs: runtime.NumCPU()}
	h.Name, _ = os.Hostname()
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	h.Kernel = "Linux " + strings.TrimSpace(string(release))
	return h
}
