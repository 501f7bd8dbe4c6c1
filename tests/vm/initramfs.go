package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed init.sh
var initScript string

// bootModules bring the machine as far as this machine's files.
var bootModules = []string{"virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay"}

// unpackers make a compressed module plain.
var unpackers = map[string]string{".xz": "xz", ".zst": "zstd", ".gz": "gzip"}

// initramfs is the file system that the machine starts with: busybox, the boot modules in the order in which they
// load, and init.sh.
func initramfs(k kernel) ([]byte, error) {
	busybox, err := tool("busybox")
	if err != nil {
		return nil, err
	}
	shell, err := os.ReadFile(busybox)
	if err != nil {
		return nil, err
	}
	paths, err := k.insertions(bootModules)
	if err != nil {
		return nil, err
	}
	var a archive
	for _, dir := range []string{"bin", "dev", "host", "modules", "new", "proc", "rw", "sys"} {
		a.add(dir, isDir|0o755, nil)
	}
	a.add("bin/busybox", isFile|0o755, shell)
	for n, p := range paths {
		data, err := readModule(p)
		if err != nil {
			return nil, err
		}
		a.add(fmt.Sprintf("modules/%02d.ko", n), isFile|0o644, data)
	}
	a.add("init", isFile|0o755, []byte(initScript))
	return a.end(), nil
}

// insertions are the files to load for some modules, in order.
func (k kernel) insertions(modules []string) ([]string, error) {
	modprobe, err := tool("modprobe")
	if err != nil {
		return nil, err
	}
	c := exec.Command(modprobe, append([]string{"-d", k.root, "-S", k.release, "--show-depends", "-a"}, modules...)...)
	out, err := c.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		return nil, fmt.Errorf("%s: %w", strings.Join(c.Args, " "), err)
	}
	var paths []string
	for line := range strings.Lines(string(out)) {
		p, ok := strings.CutPrefix(strings.TrimSpace(line), "insmod ") // else built in
		if ok && !slices.Contains(paths, strings.TrimSpace(p)) {
			paths = append(paths, strings.TrimSpace(p))
		}
	}
	return paths, nil
}

func readModule(name string) ([]byte, error) {
	unpack, ok := unpackers[filepath.Ext(name)]
	if !ok {
		return os.ReadFile(name)
	}
	out, err := exec.Command(unpack, "-dc", name).Output()
	if err != nil {
		return nil, fmt.Errorf("%s -dc %s: %w", unpack, name, err)
	}
	return out, nil
}

// File types in an archive's modes.
const (
	isDir  = 0o040000
	isFile = 0o100000
)

// archive is a cpio archive in the form that the kernel reads ("newc").
type archive struct {
	b     bytes.Buffer
	inode int
}

func (a *archive) add(name string, mode int, data []byte) {
	a.inode++
	links := 1
	fmt.Fprintf(&a.b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		a.inode, mode, 0, 0, links, 0, len(data), 0, 0, 0, 0, len(name)+1, 0, path.Clean(name))
	a.pad()
	a.b.Write(data)
	a.pad()
}

// pad fills up to a multiple of four bytes.
func (a *archive) pad() { a.b.Write(make([]byte, -a.b.Len()&3)) }

func (a *archive) end() []byte {
	a.add("TRAILER!!!", 0, nil)
	return a.b.Bytes()
}
