package session

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

// manifestOf is a writer's state of its manifest between start and end.
type manifestOf struct {
	begun   bool
	earlier string   // path of an earlier run's manifest
	room    *os.File // reservation; nil: none
}

// beginManifest writes the first version and reserves space for the last. An existing file is renamed.
func (st *Stage) beginManifest(m *manifest) error {
	o := st.writer
	if err := st.keepManifest(); err != nil {
		return err
	}
	data, err := encoded(m)
	if err == nil {
		err = writeWhole(st.manifest, data)
	}
	if err != nil {
		return err
	}
	o.manifest.begun = true
	o.manifest.room, err = reserveRoom(filepath.Dir(st.manifest), o.manifestRoom(len(data)))
	return err
}

// endManifest writes the final version. If space is short it lists as many files as fit.
func (st *Stage) endManifest(m *manifest) error {
	room := st.writer.manifest.room
	defer room.Close()
	for {
		data, err := encoded(m)
		if err != nil {
			return err
		}
		if room == nil || fillRoom(room, st.manifest, data) != nil {
			err = writeWhole(st.manifest, data)
		}
		if !errors.Is(err, syscall.ENOSPC) || len(m.Files) == 0 {
			return err
		}
		m.LeftOut += (len(m.Files) + 1) / 2
		m.Files = m.Files[:len(m.Files)/2]
	}
}

// keepManifest renames the manifest of an earlier run.
func (st *Stage) keepManifest() error {
	if _, err := os.Lstat(st.manifest); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for n := 1; ; n++ {
		to := fmt.Sprintf("%s.%d.json", strings.TrimSuffix(st.manifest, ".json"), n)
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			err = os.Rename(st.manifest, to)
			if err == nil {
				st.writer.manifest.earlier = to
			}
			return err
		} else if err != nil {
			return err
		}
	}
}

// replaceManifest removes the manifest of an earlier run whose file this run has replaced.
func (st *Stage) replaceManifest() {
	if st.writes() && st.writer.Overwrite && st.writer.oneFile() && st.writer.manifest.earlier != "" {
		_ = os.Remove(st.writer.manifest.earlier)
	}
}

// removeManifest removes the manifest of a session, or a stage, that did not start.
func (st *Stage) removeManifest() {
	if st.manifest == "" {
		return
	}
	of := &st.writer.manifest
	if of.begun {
		_ = os.Remove(st.manifest)
		_ = of.room.Close()
	}
	if of.earlier != "" {
		_ = os.Rename(of.earlier, st.manifest)
	}
	*of = manifestOf{}
}

func encoded(m *manifest) ([]byte, error) {
	data, err := json.MarshalIndent(m, "", "  ")
	return append(data, '\n'), err
}

// manifestRoom returns the estimated maximum size of the final manifest in bytes: the initial size plus larger figures and the files for which there
// is space, few of which are expected on a small disk.
func (o *WriterOptions) manifestRoom(begun int) int64 {
	const figures, most = 32 << 10, 1 << 16
	files := uint64(len(o.Dirs))
	if !o.Format.Each && !o.oneFile() {
		files = 4096
		if o.Rotate.Bytes > 0 {
			files = uint64(len(o.Dirs))
			for _, dir := range o.Dirs {
				files += freeBytes(dir) / o.Rotate.Bytes
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
