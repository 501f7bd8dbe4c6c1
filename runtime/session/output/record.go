package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"
)

// A manifest's file is written at the start, together with a reservation of disk space for the final version, which replaces it at the end. The
// reservation is an unnamed file, which is deleted with the process: the final version can be written even if the run has filled the disk. File
// systems without unnamed files (NFS) have no reservation.

// Record is the manifest file of a writer, between start and end. Remove and RemoveEarlier may be called on nil.
type Record struct {
	path    string
	begun   bool
	earlier string   // path of an earlier run's manifest
	room    *os.File // reservation; nil: none
}

// NewRecord returns the record of a manifest to be written to path.
func NewRecord(path string) *Record { return &Record{path: path} }

// Is reports whether path has the name of the manifest in the same folder, regardless of spelling.
func (r *Record) Is(path string) bool { return sameName(r.path, path) }

// Written reports whether the first version was written.
func (r *Record) Written() bool { return r.begun }

// Begin writes the first version and reserves space for the last. An existing file is renamed. many reports
// that the manifest will list several files of a folder.
func (r *Record) Begin(m *Manifest, many bool) error {
	if err := r.keep(); err != nil {
		return err
	}
	data, err := encoded(m)
	if err == nil {
		err = writeWhole(r.path, data)
	}
	if err != nil {
		return err
	}
	r.begun = true
	r.room, err = reserveRoom(filepath.Dir(r.path), m.Writer.room(len(data), many))
	return err
}

// End writes the final version. If space is short it lists as many files as fit.
func (r *Record) End(m *Manifest) error {
	room := r.room
	defer room.Close()
	for {
		data, err := encoded(m)
		if err != nil {
			return err
		}
		if room == nil || fillRoom(room, r.path, data) != nil {
			err = writeWhole(r.path, data)
		}
		if !errors.Is(err, syscall.ENOSPC) || len(m.Files) == 0 {
			return err
		}
		m.LeftOut += (len(m.Files) + 1) / 2
		m.Files = m.Files[:len(m.Files)/2]
	}
}

// keep renames the manifest of an earlier run.
func (r *Record) keep() error {
	if _, err := os.Lstat(r.path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for n := 1; ; n++ {
		to := fmt.Sprintf("%s.%d.json", strings.TrimSuffix(r.path, ".json"), n)
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			err = os.Rename(r.path, to)
			if err == nil {
				r.earlier = to
			}
			return err
		} else if err != nil {
			return err
		}
	}
}

// RemoveEarlier removes the manifest of an earlier run.
func (r *Record) RemoveEarlier() {
	if r != nil && r.earlier != "" {
		_ = os.Remove(r.earlier)
	}
}

// Remove removes the manifest of a session, or a stage, that did not start, and restores an earlier run's.
func (r *Record) Remove() {
	if r == nil {
		return
	}
	if r.begun {
		_ = os.Remove(r.path)
		_ = r.room.Close()
	}
	if r.earlier != "" {
		_ = os.Rename(r.earlier, r.path)
	}
	*r = Record{path: r.path}
}

func encoded(m *Manifest) ([]byte, error) {
	data, err := json.MarshalIndent(m, "", "  ")
	return append(data, '\n'), err
}

// room returns the estimated maximum size of the final manifest in bytes: the initial size plus larger figures and the files for which there is space,
// few of which are expected on a small disk.
func (o *Writer) room(begun int, many bool) int64 {
	const figures, most = 32 << 10, 1 << 16
	files := uint64(len(o.Dirs))
	if many {
		files = 4096
		if o.RotateBytes > 0 {
			files = uint64(len(o.Dirs))
			for _, dir := range o.Dirs {
				files += freeBytes(dir) / o.RotateBytes
			}
			files = min(files, most)
		}
	}
	entry := uint64(len(o.Dirs[0]) + len(o.Prefix) + 400)
	return int64(2*begun) + figures + int64(min(files*entry, max(freeBytes(o.Dirs[0])/32, 16<<10)))
}

// freeBytes returns the free space for files in dir, or 0 if unknown.
func freeBytes(dir string) uint64 {
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil {
		return 0
	}
	return fs.Bavail * uint64(fs.Bsize)
}

// Constants that package syscall lacks, for all architectures.
const (
	openUnnamed   = 0o20000000 | syscall.O_DIRECTORY // O_TMPFILE
	currentFolder = -100                             // AT_FDCWD
	followLinks   = 0x400                            // AT_SYMLINK_FOLLOW
)

// reserveRoom creates an unnamed file in dir with reserved disk space; it returns nil if the file system does not support this.
func reserveRoom(dir string, bytes int64) (*os.File, error) {
	f, err := os.OpenFile(dir, openUnnamed|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil
	}
	if err = syscall.Fallocate(int(f.Fd()), 0, 0, bytes); err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EOPNOTSUPP) {
		return nil, nil
	}
	return nil, fmt.Errorf("%d bytes for its end: %w; hint: free some, or write elsewhere", bytes, err)
}

// fillRoom writes data to the reserved file and links it at path, replacing an existing file.
func fillRoom(room *os.File, path string, data []byte) error {
	if _, err := room.WriteAt(data, 0); err != nil {
		return err
	}
	if err := errors.Join(room.Truncate(int64(len(data))), room.Chmod(0o644)); err != nil {
		return err
	}
	name := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := linkOpen(room, name); err != nil {
		return err
	}
	return renamed(name, path)
}

// linkOpen gives an unnamed file a name.
func linkOpen(f *os.File, name string) error {
	from, err := syscall.BytePtrFromString(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return err
	}
	to, err := syscall.BytePtrFromString(name)
	if err != nil {
		return err
	}
	here := currentFolder
	_, _, errno := syscall.Syscall6(syscall.SYS_LINKAT, uintptr(here), uintptr(unsafe.Pointer(from)), uintptr(here), uintptr(unsafe.Pointer(to)), followLinks, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// writeWhole replaces a file atomically: readers see the old or the new content.
func writeWhole(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	return renamed(f.Name(), path)
}

// renamed renames a file, or removes it on error.
func renamed(name, path string) error {
	err := os.Rename(name, path)
	if err != nil {
		_ = os.Remove(name)
	}
	return err
}
