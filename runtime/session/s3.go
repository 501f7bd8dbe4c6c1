package session

import (
	"cmp"
	"sync"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/s3"
	"github.com/daqiri/daqiri-run/runtime/session/upload"
)

// uploadDepth is the maximum number of bursts waiting to be copied to staging memory.
const uploadDepth = 256

// S3Options describes the objects of a writer.
type S3Options struct {
	s3.Config
	Policy    Policy
	Overwrite bool   // allow existing objects of the writer's names
	Text      string // user text for objects of blocks
}

// WriteS3 creates a stage that uploads packets as objects, one or many packets in each.
func (s *Session) WriteS3(name string, o S3Options) (*Stage, error) {
	o.Wait = o.Policy == Wait || s.Virtual()
	u, err := upload.New(o.Config, o.Overwrite, o.Text)
	if err != nil {
		return nil, invalid("write_s3: %v", err)
	}
	if s.Started() {
		err = u.Check(cmp.Or(name, KindS3))
	}
	var st *Stage
	if err == nil {
		st, err = s.stage(name, KindS3, "", func(n string) (native.Stage, error) {
			s.stores.Store(n, true)
			return s.native.AddExternalWriter(n, uploadDepth, o.Policy)
		})
	}
	if err != nil {
		u.Close()
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u.Start(st.name, st.native)
	st.s3 = u
	return st, nil
}

// EndUploads stops the intake of a writer of objects and uploads the rest; the operation completes after that.
func (st *Stage) EndUploads() (*Op, error) {
	op, err := st.s3.EndSoon()
	if err != nil {
		return nil, err
	}
	return newOp("writer "+st.name, op), nil
}

// endUploads ends the uploads of all stages. The session's lock must be held.
func (s *Session) endUploads() {
	var all sync.WaitGroup
	for _, st := range s.stages {
		if st.s3 != nil {
			all.Go(st.s3.End)
		}
	}
	all.Wait()
}

// checkUploads verifies the stores of all stages.
func (s *Session) checkUploads() error {
	for _, st := range s.stages {
		if st.s3 == nil {
			continue
		}
		if err := st.s3.Check(st.name); err != nil {
			return err
		}
	}
	return nil
}
