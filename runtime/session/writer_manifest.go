package session

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/session/output"
	"github.com/daqiri/daqiri-run/runtime/stats"
)

// newManifest returns the manifest of a writer, DIR/PREFIX.manifest.json, or DIR/PREFIX.NAME.manifest.json if another writer of the session used the
// prefix in that folder before; nil if the writer has none. The session's lock must be held.
func (s *Session) newManifest(st *Stage) *output.Record {
	o := st.writer
	if o.NoManifest {
		return nil
	}
	base := o.Prefix
	for n := 1; ; n++ {
		path := filepath.Join(o.Dirs[0], base+".manifest.json")
		if !slices.ContainsFunc(s.stages, func(other *Stage) bool { return other.manifest != nil && other.manifest.Is(path) }) {
			return output.NewRecord(path)
		}
		base = o.Prefix + "." + strings.ReplaceAll(st.name, "/", "_")
		if n > 1 {
			base += fmt.Sprintf(".%d", n)
		}
	}
}

// manifestFiles returns the writer's files.
func (st *Stage) manifestFiles() []output.File {
	list := []output.File{}
	for _, f := range st.native.WriterFiles() {
		list = append(list, output.NewFile(&f, st.writer.Format.Aggregates))
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
	r := st.manifest
	if r == nil || st.native.Abandoned() || finished && !r.Written() { // an abandoned writer's folder may hang
		return nil
	}
	p := &s.env.Program
	m := output.NewManifest(p.Version, p.Script, p.Text, s.snapshot(), s.cfg)
	m.Writer, m.Files = st.manifestWriter(m.Ledger), st.manifestFiles()
	m.Error = st.native.WriterError()
	var err error
	if finished {
		reason, _ := s.Stopping()
		m.Finish(reason)
		err = r.End(m)
	} else {
		err = r.Begin(m, !st.writer.Format.Each && !st.writer.oneFile())
	}
	if err == nil || m.Error != "" {
		return nil
	}
	return fmt.Errorf("writer %s: its manifest: %w", st.name, err)
}

func (st *Stage) manifestWriter(l *stats.Ledger) output.Writer {
	o := st.writer
	w := output.Writer{Name: st.name, Kind: st.kind, Dirs: o.Dirs, Prefix: o.Prefix, Policy: o.Policy.String(),
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

// replaceManifest removes the manifest of an earlier run whose file this run has replaced.
func (st *Stage) replaceManifest() {
	if st.writes() && st.writer.Overwrite && st.writer.oneFile() {
		st.manifest.RemoveEarlier()
	}
}
