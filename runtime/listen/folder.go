package listen

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// SocketFolder returns the folder of this user's sockets, and how many of its last levels belong to this program (see Folder). runtimeDir is the
// value of XDG_RUNTIME_DIR; empty: a folder in that for temporary files.
func SocketFolder(runtimeDir string) (dir string, own int) {
	if runtimeDir != "" {
		return filepath.Join(runtimeDir, "daqiri-run"), 1
	}
	return filepath.Join(os.TempDir(), "daqiri-run-"+strconv.Itoa(os.Getuid()), "daqiri-run"), 2
}

// Folder creates the folder dir, with its last `own` levels private to this user, and checks that they are: otherwise another user could place a
// socket there. The levels above must exist.
func Folder(dir string, own int) error {
	if own > 1 {
		if err := Folder(filepath.Dir(dir), own-1); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	return private(dir)
}

// private returns an error if other users can change the content of a folder.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder, but a %s", dir, kindOf(info))
	case int(owner) != os.Getuid():
		return fmt.Errorf("%s is of user %d, and not yours: name a socket in a folder of your own, or set XDG_RUNTIME_DIR", dir, owner)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s can be written by others (mode %04o): hint: chmod 700", dir, info.Mode().Perm())
	}
	return nil
}

func kindOf(info os.FileInfo) string {
	if info.Mode()&os.ModeSymlink != 0 {
		return "symbolic link"
	}
	return "file"
}
