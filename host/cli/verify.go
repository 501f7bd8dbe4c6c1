package cli

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/runtime/textfile"
)

// manifestFiles is the part of a manifest that verify reads (docs/writers.md).
type manifestFiles struct {
	Schema int    `json:"schema"`
	State  string `json:"state"`
	Reason string `json:"reason"`
	Error  string `json:"error"`
	Writer struct {
		Name      string `json:"name"`
		Naming    string `json:"naming"`
		FileCount uint64 `json:"file_count"`
	} `json:"writer"`
	Files   []manifestFile `json:"files"`
	LeftOut int            `json:"files_left_out"`
	Ledger  struct {
		Lines []struct {
			Kind    string            `json:"kind"`
			Name    string            `json:"name"`
			In      uint64            `json:"in"`
			Out     uint64            `json:"out"`
			Dropped map[string]uint64 `json:"dropped"`
		} `json:"lines"`
	} `json:"ledger"`
}

type manifestFile struct {
	Path    string `json:"path"`
	Raw     []byte `json:"path_base64"`
	Bytes   uint64 `json:"bytes"`
	Packets uint64 `json:"packets"`
	CRC32C  string `json:"crc32c"`
	Deleted bool   `json:"deleted"`
}

// lost describes how many packets the writer received, wrote and lost, and why; "" if none were lost.
func (m *manifestFiles) lost() string {
	for _, l := range m.Ledger.Lines {
		if l.Kind != "writer" || l.Name != m.Writer.Name || len(l.Dropped) == 0 {
			continue
		}
		var why []string
		for _, reason := range slices.Sorted(maps.Keys(l.Dropped)) {
			why = append(why, fmt.Sprintf("%d %s", l.Dropped[reason], reason))
		}
		return fmt.Sprintf("%d of %d packets were written, %d were not: %s", l.Out, l.In, l.In-l.Out, strings.Join(why, ", "))
	}
	return ""
}

// newVerify returns the command "verify", which checks files against their manifest.
func newVerify(g *state.Global) *cobra.Command {
	return &cobra.Command{
		Use:   "verify MANIFEST...",
		Short: "check files against their manifest: length and CRC-32C",
		Long: `verify reads each file that a manifest (PREFIX.manifest.json) lists and compares length and CRC-32C with what was written. A file that is
not at the path in the manifest is searched beside the manifest. What the writer has lost is printed, too. The exit code is 8 where one differs or is missing, or where the
manifest is that of a run that did not end.`,
		Args:              needs("a manifest: PREFIX.manifest.json, beside the files"),
		ValidArgsFunction: filesNamed(".manifest.json"),
		RunE: func(_ *cobra.Command, args []string) error {
			bad := 0
			for _, name := range args {
				n, err := verify(g.Stdout, name)
				if err != nil {
					return err
				}
				bad += n
			}
			if bad > 0 {
				return exit.Ended(exit.Findings)
			}
			return nil
		},
	}
}

// verify prints a line per file and returns the number of failures.
func verify(w io.Writer, name string) (bad int, err error) {
	data, err := textfile.Read(name)
	if err != nil {
		return 0, exit.Fail(exit.Usage, err)
	}
	var m manifestFiles
	if err := json.Unmarshal(data, &m); err != nil || m.Schema != 1 || m.State == "" {
		return 0, exit.Fail(exit.Usage, errors.Join(fmt.Errorf("%s is not a manifest of schema 1", name), err))
	}
	say := func(mark, format string, args ...any) {
		fmt.Fprintf(w, "%-5s %s\n", mark, state.Visible(fmt.Sprintf(format, args...)))
		if mark == failed {
			bad++
		}
	}
	m.verifyRun(name, say)
	for _, f := range m.Files {
		f.verify(filepath.Dir(name), m.State == "finished", say)
	}
	if m.Writer.FileCount > 0 {
		say("-", "%d files %s: the manifest has only their number", m.Writer.FileCount, m.Writer.Naming)
	}
	return bad, nil
}

// failed marks the lines of failures.
const failed = "FAIL"

// verifyRun prints the manifest's entries about the run.
func (m *manifestFiles) verifyRun(name string, say func(mark, format string, args ...any)) {
	if m.State != "finished" {
		say(failed, "%s: the run did not end: its files are as they were left", name)
	}
	if m.Error != "" {
		say(failed, "%s: the writer met an error: %s", name, m.Error)
	}
	if lost := m.lost(); lost != "" {
		say("-", "%s: %s", name, lost)
	}
	if m.LeftOut > 0 {
		say(failed, "%s: %d more files were written: the disk was full, and had no room for them in the manifest", name, m.LeftOut)
	}
}

// verify checks a file, at the manifest's path or in folder dir, against the manifest. finished: the manifest is complete.
func (f *manifestFile) verify(dir string, finished bool, say func(mark, format string, args ...any)) {
	if f.Raw != nil {
		f.Path = string(f.Raw)
	}
	if f.Deleted {
		say("ok", "%s: deleted to keep the quota", f.Path)
		return
	}
	path := f.Path
	if _, gone := os.Stat(path); gone != nil {
		path = filepath.Join(dir, filepath.Base(f.Path))
	}
	bytes, sum, err := checksum(path)
	switch {
	case err != nil:
		say(failed, "%s: %v", f.Path, err)
	case finished && bytes != f.Bytes:
		say(failed, "%s: %d bytes, %d were written", path, bytes, f.Bytes)
	case finished && f.CRC32C == "":
		say(failed, "%s: %d bytes, and the manifest has no CRC-32C of it", path, bytes)
	case finished && sum != f.CRC32C:
		say(failed, "%s: CRC-32C %s, %s was written: its bytes were changed", path, sum, f.CRC32C)
	default:
		say("ok", "%s: %d bytes, %d packets, CRC-32C %s", path, bytes, f.Packets, sum)
	}
}

// checksum returns the length and CRC-32C (Castagnoli) of a regular file, as eight hexadecimal digits. Other kinds are refused, as devices and
// pipes may be endless.
func checksum(path string) (bytes uint64, sum string, err error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return 0, "", cmp.Or(err, fmt.Errorf("%s is not a regular file", path))
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have become a pipe
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	crc := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	n, err := io.Copy(crc, bufio.NewReaderSize(f, 1<<20))
	return uint64(n), fmt.Sprintf("%08x", crc.Sum32()), err
}
