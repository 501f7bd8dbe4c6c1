package cunit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// threadMark is a library in front of pthread_create that makes the file DQ_THREAD_MARK when a thread is started.
const threadMark = `#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

typedef int create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static create *real;

__attribute__((constructor)) static void find(void) { real = (create *)dlsym(RTLD_NEXT, "pthread_create"); }

int pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    const char *mark = getenv("DQ_THREAD_MARK");
    int fd = mark ? open(mark, O_CREAT | O_WRONLY | O_CLOEXEC, 0600) : -1;
    if (fd >= 0) close(fd);
    return real(t, attr, fn, arg);
}
`

// Threads finds out which units start threads, in the variant plain, so that the thread sanitizer can leave out the others. The zero
// value knows of none.
type Threads struct {
	mu      sync.Mutex
	library string
	marks   map[string]string // of units that ran: the file that is there if they started a thread
}

// Watch returns v so that a run of the unit is noted. dir is a folder for files that lasts as long as th.
func (th *Threads) Watch(v Variant, dir, unit string) (Variant, error) {
	th.mu.Lock()
	defer th.mu.Unlock()
	if th.library == "" {
		source, library := filepath.Join(dir, "mark.c"), filepath.Join(dir, "mark.so")
		if err := os.WriteFile(source, []byte(threadMark), 0o600); err != nil {
			return v, err
		}
		if out, err := exec.Command("gcc", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", library, source, "-ldl").CombinedOutput(); err != nil {
			return v, fmt.Errorf("gcc: %w\n%s", err, out)
		}
		th.library, th.marks = library, map[string]string{}
	}
	mark := filepath.Join(dir, unit+".threads")
	th.marks[unit] = mark
	v.env = append(v.env[:len(v.env):len(v.env)], "LD_PRELOAD="+th.library, "DQ_THREAD_MARK="+mark)
	return v, nil
}

// None reports whether the unit ran and started no thread.
func (th *Threads) None(unit string) bool {
	th.mu.Lock()
	defer th.mu.Unlock()
	mark, ran := th.marks[unit]
	if !ran {
		return false
	}
	_, err := os.Stat(mark)
	return os.IsNotExist(err)
}
