package session

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/stats"
	"github.com/daqiri/daqiri-run/runtime/textfile"
)

// Program identifies the program that created the files of a session.
type Program struct {
	Version string
	Script  string // path; empty: none
	Text    string // content of a script without a file
}

// manifestSchema is the version of the manifest's format.
const manifestSchema = 1

// manifest is the content of DIR/PREFIX.manifest.json: a description of a writer's files and their origin. It is written when the session starts,
// with state unfinished, and again at its end.
type manifest struct {
	Schema        int            `json:"schema"`
	State         string         `json:"state"`            // unfinished or finished
	Reason        string         `json:"reason,omitempty"` // reason of the end
	Error         string         `json:"error,omitempty"`  // first error of the writer
	Version       string         `json:"version"`
	Script        string         `json:"script,omitempty"`
	ScriptSHA256  string         `json:"script_sha256,omitempty"`
	Host          manifestHost   `json:"host"`
	Clock         string         `json:"clock"`   // clock of all times except written
	Started       time.Time      `json:"started"` // time at which packets began to move
	Ended         *time.Time     `json:"ended"`
	Written       time.Time      `json:"written"` // wall clock
	Writer        manifestWriter `json:"writer"`
	Files         []manifestFile `json:"files"`                    // files, except those per packet or burst
	LeftOut       int            `json:"files_left_out,omitempty"` // number of files omitted because the disk was full
	Ledger        *stats.Ledger  `json:"ledger"`
	Configuration *spec.Plan     `json:"configuration"`
}

type manifestHost struct {
	Name   string `json:"name"`
	Kernel string `json:"kernel"`
	Arch   string `json:"arch"`
	CPUs   int    `json:"cpus"`
}

// manifestWriter holds the options given by the script.
type manifestWriter struct {
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

// manifestFile is one file; its figures are set once it is closed.
type manifestFile struct {
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

func instant(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// manifestPath returns DIR/PREFIX.manifest.json, or DIR/PREFIX.NAME.manifest.json if another writer of the session used the prefix in that folder
// before. The session's lock must be held.
func (s *Session) manifestPath(st *Stage) string {
	o := st.writer
	if o.NoManifest {
		return ""
	}
	base := o.Prefix
	for n := 1; ; n++ {
		path := filepath.Join(o.Dirs[0], base+".manifest.json")
		if !slices.ContainsFunc(s.stages, func(other *Stage) bool { return other.manifest != "" && sameName(other.manifest, path) }) {
			return path
		}
		base = o.Prefix + "." + strings.ReplaceAll(st.name, "/", "_")
		if n > 1 {
			base += fmt.Sprintf(".%d", n)
		}
	}
}

// sameName reports whether two paths have the same name in the same folder, regardless of spelling.
func sameName(a, b string) bool {
	x, err := os.Stat(filepath.Dir(a))
	y, other := os.Stat(filepath.Dir(b))
	return filepath.Base(a) == filepath.Base(b) && (a == b || err == nil && other == nil && os.SameFile(x, y))
}

// manifestFiles returns the writer's files.
func (st *Stage) manifestFiles() []manifestFile {
	list := []manifestFile{}
	for _, f := range st.native.WriterFiles() {
		m := manifestFile{Path: f.Path, Bytes: f.Bytes, Packets: f.Packets, Deleted: f.Deleted}
		if !utf8.ValidString(f.Path) {
			m.PathBytes = []byte(f.Path)
		}
		if f.Closed {
			m.CRC32C = fmt.Sprintf("%08x", f.CRC32C)
		}
		if f.Closed && f.Packets > 0 {
			if first, last := instant(f.FirstNS), instant(f.LastNS); f.FirstNS != NoTime {
				m.First, m.Last = &first, &last
			}
			if st.writer.Format.Aggregates {
				m.FirstBatch, m.LastBatch = &f.FirstBatch, &f.LastBatch
			}
		}
		list = append(list, m)
	}
	return list
}

// writeManifests writes the manifests of all writers. The session's lock must be held.
func (s *Session) writeManifests(finished bool) error {
	var errs []error
	for _, st := range s.stages {
		errs = append(errs, s.writeManifest(st, finished))
	}
	return errors.Join(errs...)
}

// writeManifest writes the manifest of a stage, if it has one. The session's lock must be held.
func (s *Session) writeManifest(st *Stage, finished bool) error {
	if st.manifest == "" || st.native.Abandoned() || finished && !st.writer.manifest.begun { // an abandoned writer's folder may hang
		return nil
	}
	m := s.manifest(finished)
	m.Writer, m.Files = st.manifestWriter(m.Ledger), st.manifestFiles()
	m.Error = st.native.WriterError()
	var err error
	if finished {
		err = st.endManifest(m)
	} else {
		err = st.beginManifest(m)
	}
	if err == nil || m.Error != "" {
		return nil
	}
	return fmt.Errorf("writer %s: its manifest: %w", st.name, err)
}

func (st *Stage) manifestWriter(l *stats.Ledger) manifestWriter {
	o := st.writer
	w := manifestWriter{Name: st.name, Kind: st.kind, Dirs: o.Dirs, Prefix: o.Prefix, Policy: o.Policy.String(),
		Snaplen: o.Snaplen, Append: o.Append, Overwrite: o.Overwrite, Text: o.Text, DataOffset: o.PacketDataOffset,
		RotateBytes: o.Rotate.Bytes, RotatePackets: o.Rotate.Packets, RotateSeconds: float64(o.Rotate.After) / 1e9,
		Quota: o.Quota, DeleteOldest: o.DeleteOldest, StopWhenFull: o.StopWhenFull}
	if o.Format.Takes("format") {
		w.Format = o.Format.Choice
	}
	if o.Format.Takes("precision") {
		w.Precision = "ns"
		if o.Micro {
			w.Precision = "us"
		}
	}
	if o.Format.Each {
		w.Naming = "DIR/PREFIX_INDEX"
		for i := range l.Lines {
			if x := &l.Lines[i]; x.Kind == stats.Writer && x.Name == st.name {
				w.FileCount = x.Extra.Get("files")
			}
		}
	}
	return w
}

// manifest returns the part common to the manifests of all writers.
func (s *Session) manifest(finished bool) *manifest {
	l := s.snapshot()
	m := &manifest{Schema: manifestSchema, State: "unfinished", Version: s.env.Program.Version, Script: s.env.Program.Script,
		Host: readHost(), Clock: l.Clock, Started: instant(l.StartNS), Written: time.Now().UTC(), Ledger: l,
		Configuration: spec.Inspect(s.cfg)}
	text, err := []byte(s.env.Program.Text), error(nil)
	if len(text) == 0 {
		text, err = textfile.Read(m.Script)
	}
	if err == nil {
		m.ScriptSHA256 = fmt.Sprintf("%x", sha256.Sum256(text))
	}
	if finished {
		ended := instant(l.EndNS)
		m.State, m.Ended = "finished", &ended
		m.Reason, _ = s.Stopping()
	}
	return m
}

func readHost() manifestHost {
	h := manifestHost{Arch: runtime.GOARCH, CPUs: runtime.NumCPU()}
	h.Name, _ = os.Hostname()
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	h.Kernel = "Linux " + strings.TrimSpace(string(release))
	return h
}
