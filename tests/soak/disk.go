package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// disk is a small file system of its own, which can be filled and frozen; a plain folder where it cannot be made.
type disk struct {
	dir   string
	image string // empty: a plain folder
	lack  error  // why
}

const diskBytes = 160 << 20

func newDisk(dir string) *disk {
	d := &disk{dir: filepath.Join(dir, "disk"), image: filepath.Join(dir, "image")}
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		d.lack = err
	} else if err := os.WriteFile(d.image, nil, 0o600); err != nil {
		d.lack = err
	} else if err := os.Truncate(d.image, diskBytes); err != nil {
		d.lack = err
	}
	for _, args := range [][]string{{"mkfs.ext4", "-q", d.image}, {"mount", "-o", "loop", d.image, d.dir}} {
		if d.lack == nil {
			d.lack = command(args...)
		}
	}
	if d.lack != nil {
		d.image = ""
	}
	return d
}

func command(args ...string) error {
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w %s", args[0], err, out)
	}
	return nil
}

// freeze makes every write wait until thaw.
func (d *disk) freeze() error { return command("fsfreeze", "--freeze", d.dir) }
func (d *disk) thaw() error   { return command("fsfreeze", "--unfreeze", d.dir) }

// fill takes all room that is left.
func (d *disk) fill() error {
	f, err := os.Create(filepath.Join(d.dir, "filler"))
	if err != nil {
		return err
	}
	for size := 1 << 20; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			return errors.Join(err, f.Close())
		}
	}
	return f.Close()
}

func (d *disk) remove() {
	if d != nil && d.image != "" {
		_ = command("umount", "--lazy", d.dir)
		_ = os.Remove(d.image)
	}
}
