package baseline

import (
	"context"
	"syscall"
	"time"

	"github.com/daqiri/daqiri-run/runtime/s3"
)

// Store is the destination of objects.
type Store = s3.Config

// RunPut uploads n objects of size bytes from one buffer by the S3 writer's client alone; a packet is an object.
func RunPut(conf Store, size, n int) (Figures, error) {
	began, before := time.Now(), cpuTime()
	err := s3.PutReady(context.Background(), conf, size, n)
	return Figures{Packets: uint64(n), Bytes: uint64(n) * uint64(size), Seconds: time.Since(began).Seconds(),
		CPUSeconds: (cpuTime() - before).Seconds()}, err
}

// cpuTime returns the CPU time of the process; 0 where the kernel does not report it.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
