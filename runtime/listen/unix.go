package listen

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// Unix listens on a unix socket, of network "unix" or "unixpacket", whose file has these permissions. It replaces the file of a socket that no process
// listens on. The caller removes the file after Close.
func Unix(network, path string, mode fs.FileMode) (*net.UnixListener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&fs.ModeSocket == 0 {
			return nil, fmt.Errorf("%s is there, and is not a socket", path)
		}
		c, err := net.Dial("unixgram", path) // of another type than a listening socket, which so gets no connection
		if err == nil {
			_ = c.Close()
		}
		if err == nil || errors.Is(err, syscall.EPROTOTYPE) {
			return nil, fmt.Errorf("%s: another process listens there", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	// The socket has a temporary name until its mode is set, so that other users cannot connect before.
	made := fmt.Sprintf("%s.%d", path, os.Getpid())
	l, err := net.ListenUnix(network, &net.UnixAddr{Name: made, Net: network})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err = os.Chmod(made, mode); err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		_ = l.Close()
		_ = os.Remove(made)
		return nil, err
	}
	return l, nil
}
