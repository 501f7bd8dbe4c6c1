package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// fetchKernel downloads and unpacks the kernel package that linux-image-amd64 stands for, in the distribution's own
// packages or those of another suite of its archive. The folder `to` appears when it is complete.
func fetchKernel(to, suite string) error {
	dir, err := os.MkdirTemp(filepath.Dir(to), "fetch-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	apt, err := newAptList(dir, suite)
	if err != nil {
		return err
	}
	names, err := apt.kernelPackages()
	if err != nil {
		return err
	}
	if err := command(dir, "apt-get", slices.Concat(apt, []string{"-q", "download"}, names)...); err != nil {
		return err
	}
	packages, _ := filepath.Glob(filepath.Join(dir, "*.deb"))
	if len(packages) != len(names) {
		return fmt.Errorf("apt-get download %s brought %d packages", strings.Join(names, " "), len(packages))
	}
	root := filepath.Join(dir, "kernel")
	for _, p := range packages {
		if err := command(dir, "dpkg", "-x", p, root); err != nil {
			return err
		}
	}
	if err := settle(root); err != nil {
		return fmt.Errorf("%s: %w", names[0], err)
	}
	return os.Rename(root, to)
}

// aptList is apt's options for a list of packages.
type aptList []string

// newAptList is the list that apt has; for another suite one in a folder of its own, and nothing of apt's changes.
func newAptList(dir, suite string) (aptList, error) {
	if suite == "" {
		return nil, nil
	}
	out, err := exec.Command("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian",
		"Component: main", "Label: Debian").Output()
	uri, _, _ := strings.Cut(string(out), "\n")
	if err != nil || uri == "" {
		return nil, fmt.Errorf("apt-get indextargets names no archive of Debian's (%v; hint: on Debian, apt-get update)", err)
	}
	list := filepath.Join(dir, "sources.list")
	line := fmt.Sprintf("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n", uri, suite)
	if err := os.WriteFile(list, []byte(line), 0o644); err != nil {
		return nil, err
	}
	for _, d := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	a := aptList{"-o", "Dir::Etc::sourcelist=" + list, "-o", "Dir::Etc::sourceparts=/dev/null",
		"-o", "Dir::State::lists=" + filepath.Join(dir, "lists"), "-o", "Dir::Cache=" + filepath.Join(dir, "cache")}
	return a, command(dir, "apt-get", append(slices.Clone(a), "-q", "update")...)
}

var (
	imageLine = regexp.MustCompile(`(?m)^ *Depends: (linux-image-\S+)$`)
	partLine  = regexp.MustCompile(`(?m)^ *Depends: (linux-(?:base|binary|modules)-\d\S+)$`) // newer kernels come in several
)

// kernelPackages are the package that linux-image-amd64 depends on and those that hold parts of it.
func (a aptList) kernelPackages() ([]string, error) {
	out, err := a.depends("linux-image-amd64")
	if err != nil {
		return nil, err
	}
	m := imageLine.FindStringSubmatch(out)
	if m == nil {
		return nil, errors.New("apt-cache knows no kernel that linux-image-amd64 depends on (hint: apt-get update)")
	}
	names := []string{m[1]}
	if out, err = a.depends(m[1]); err != nil {
		return nil, err
	}
	for _, m := range partLine.FindAllStringSubmatch(out, -1) {
		names = append(names, m[1])
	}
	return names, nil
}

func (a aptList) depends(name string) (string, error) {
	out, err := exec.Command("apt-cache", append(slices.Clone(a), "depends", name)...).Output()
	if err != nil {
		return "", fmt.Errorf("apt-cache depends %s: %w (hint: on Debian, apt-get update)", name, err)
	}
	return string(out), nil
}

// unused are modules that no test wants: half of all. Bluetooth takes seconds to load, when libpcap looks for devices.
var unused = []string{"sound", "drivers/gpu", "drivers/media", "drivers/net/wireless", "drivers/staging", "drivers/scsi", "drivers/iio",
	"drivers/bluetooth", "net/bluetooth"}

// settle does to an unpacked kernel what its installation would do: it lists what its modules need, in
// root/lib/modules/RELEASE.
func settle(root string) error {
	if _, err := os.Stat(filepath.Join(root, "lib")); err != nil { // newer packages have usr/lib only
		if err := os.Symlink("usr/lib", filepath.Join(root, "lib")); err != nil {
			return err
		}
	}
	images, _ := filepath.Glob(filepath.Join(root, "boot/vmlinuz-*"))
	if beside, _ := filepath.Glob(filepath.Join(root, "lib/modules/*/vmlinuz")); len(images) == 0 && len(beside) == 1 {
		images = []string{filepath.Join(root, "boot/vmlinuz-"+filepath.Base(filepath.Dir(beside[0])))}
		if err := errors.Join(os.MkdirAll(filepath.Dir(images[0]), 0o755), os.Rename(beside[0], images[0])); err != nil {
			return err
		}
	}
	if len(images) != 1 {
		return fmt.Errorf("it has %d kernels", len(images))
	}
	k := kernel{image: images[0], root: root, release: strings.TrimPrefix(filepath.Base(images[0]), "vmlinuz-")}
	for _, u := range unused {
		if err := os.RemoveAll(filepath.Join(k.modules(), "kernel", u)); err != nil {
			return err
		}
	}
	depmod, err := tool("depmod")
	if err != nil {
		return err
	}
	if err := command(root, depmod, "-b", root, k.release); err != nil {
		return err
	}
	return unpack(k.image, k.plain())
}

// unpack writes the ELF file that a bzImage has inside, which qemu starts too; none where it is not packed with xz.
func unpack(image, to string) error {
	data, err := os.ReadFile(image)
	if err != nil {
		return err
	}
	const sectors, offset, length = 0x1f1, 0x248, 0x24c // in its header: Documentation/arch/x86/boot.rst
	if len(data) < length+4 {
		return fmt.Errorf("%s has %d bytes: no bzImage", image, len(data))
	}
	from := (int(data[sectors])+1)*512 + int(binary.LittleEndian.Uint32(data[offset:]))
	end := from + int(binary.LittleEndian.Uint32(data[length:])) - 4 // its size when unpacked is last
	if from > end || end > len(data) {
		return fmt.Errorf("%s: its payload ends at %d of %d bytes", image, end, len(data))
	}
	if !bytes.HasPrefix(data[from:end], []byte("\xfd7zXZ\x00")) {
		return nil
	}
	xz := exec.Command("xz", "-dc")
	xz.Stdin = bytes.NewReader(data[from:end])
	plain, err := xz.Output()
	if err != nil {
		return fmt.Errorf("xz -dc: %w", err)
	}
	return os.WriteFile(to, plain, 0o644)
}

// command runs a command in a folder; the error holds what it reported.
func command(dir, name string, args ...string) error {
	c := exec.Command(name, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
