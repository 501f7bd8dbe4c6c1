package native

/*
#include "dq.h"
*/
import "C"

import (
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// LastRecord is the state of a running process to be printed after a crash or SIGKILL.
type LastRecord struct {
	Text          string
	Path          string // of a JSON file; "": none
	Fatal, Killed []byte // content of that file after a fatal error, and after SIGKILL
	Files         []string
}

// CrashReporter is a small process that outlives this one: see crash_reporter.c. For one goroutine.
type CrashReporter struct {
	socket  int
	records [2]*os.File
	number  uint64
}

// HandleAbort makes fatal errors end the process with exit code 70.
func HandleAbort() { C.dq_crash_reporter(-1) }

// NewCrashReporter starts a crash reporter that writes to stderr.
func NewCrashReporter(stderr *os.File) (*CrashReporter, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("crash reporter: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "crash reporter")
	defer theirs.Close()
	w := &CrashReporter{socket: pair[0]}
	files := []*os.File{nil, nil, stderr, theirs}
	for k := range w.records {
		fd, err := unix.MemfdCreate("daqiri-last", unix.MFD_CLOEXEC)
		if err != nil {
			w.close()
			return nil, fmt.Errorf("crash reporter: %w", err)
		}
		w.records[k] = os.NewFile(uintptr(fd), "last ledger")
		files = append(files, w.records[k])
	}
	p, err := os.StartProcess("/proc/self/exe", []string{C.DQ_REPORTER_NAME}, &os.ProcAttr{Env: []string{}, Files: files})
	if err != nil {
		w.close()
		return nil, fmt.Errorf("crash reporter: %w", err)
	}
	go func() { _, _ = p.Wait() }() // reaps it whenever it ends
	C.dq_crash_reporter(C.int(w.socket))
	return w, nil
}

// Keep replaces the record. After a write error the previous record remains valid.
func (w *CrashReporter) Keep(r *LastRecord) error {
	parts := [C.DQ_LAST_PARTS][]byte{C.DQ_LAST_TEXT: []byte(r.Text), C.DQ_LAST_PATH: append([]byte(r.Path), 0), C.DQ_LAST_FATAL: r.Fatal,
		C.DQ_LAST_KILLED: r.Killed}
	for _, path := range r.Files {
		parts[C.DQ_LAST_FILES] = append(append(parts[C.DQ_LAST_FILES], path...), 0)
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return err
	}
	order := binary.NativeEndian
	body := order.AppendUint64(nil, 0)
	body = order.AppendUint64(body, uint64(now.Nano()))
	for _, p := range parts {
		body = order.AppendUint64(body, uint64(len(p)))
	}
	for _, p := range parts {
		body = append(body, p...)
	}
	var most unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_FSIZE, &most) == nil && uint64(len(body)) > most.Cur {
		return fmt.Errorf("crash reporter: the ledger's %d bytes are more than ulimit -f allows", len(body))
	}
	file := w.records[w.number%2]
	if _, err := file.WriteAt(body, 0); err != nil {
		return fmt.Errorf("crash reporter: %w", err)
	}
	w.number++
	_, err := file.WriteAt(order.AppendUint64(nil, w.number), 0)
	return err
}

// End notifies the crash reporter of an orderly exit.
func (w *CrashReporter) End() {
	C.dq_crash_reporter(-1)
	_ = unix.Send(w.socket, []byte("D"), unix.MSG_NOSIGNAL)
	w.close()
}

func (w *CrashReporter) close() {
	_ = unix.Close(w.socket)
	for _, file := range w.records {
		_ = file.Close() // nil files return an error
	}
}
