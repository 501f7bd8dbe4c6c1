package attach

import (
	"fmt"
	"os"
)

// shared returns an error if other users can replace sockets in a folder given by the user: it is writable by others and lacks the sticky bit
// that /tmp has.
func shared(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o022 != 0 && info.Mode()&os.ModeSticky == 0 {
		return fmt.Errorf("%s can be written by others (mode %04o), who could replace the socket: hint: a folder of your own", dir, info.Mode().Perm())
	}
	return nil
}
