package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/daqiri/daqiri-run/host/exit"
)

// An output is a result file named on the command line, such as --report FILE. Without --overwrite it never replaces content: an existing file
// must be empty or not a regular file.
type output struct{ flag, path string }

var errTaken = errors.New("there is such a file, which stays as it is; hint: another name, or --overwrite")

// claimOutputs checks before the run that each output can be written. It leaves no new files behind, and truncates files that --overwrite allows
// to replace. inputs are files that the run reads: an output must not be one of them.
func claimOutputs(overwrite bool, inputs []string, outputs ...output) error {
	for k, o := range outputs {
		if o.path == "" {
			continue
		}
		err := claimOutput(o.path, overwrite, inputs)
		for _, other := range outputs[:k] {
			if other.path == o.path {
				err = fmt.Errorf("%s is the file of %s already", o.path, other.flag)
			}
		}
		if err != nil {
			return exit.Fail(exit.Usage, fmt.Errorf("%s: %w", o.flag, err))
		}
	}
	return nil
}

func claimOutput(path string, overwrite bool, inputs []string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		return errors.Join(f.Close(), os.Remove(path))
	case err != nil:
		return err
	case !info.Mode().IsRegular() && !info.IsDir():
		return nil // opening a FIFO would block
	case info.Size() > 0 && !info.IsDir() && !overwrite:
		return fmt.Errorf("%s: %w", path, errTaken)
	}
	for _, name := range inputs {
		if other, err := os.Stat(name); err == nil && os.SameFile(info, other) {
			return fmt.Errorf("%s is a file that this run reads", path)
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// writeOutput writes a file checked by claimOutputs. It refuses a file with content added since, which may be a file of the run.
func writeOutput(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	if info, err := f.Stat(); err != nil || info.Mode().IsRegular() && info.Size() > 0 {
		return errors.Join(err, fmt.Errorf("%s: %w", path, errTaken), f.Close())
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
