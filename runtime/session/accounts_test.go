package session

import (
	"testing"

	"github.com/daqiri/daqiri-run/runtime/spec"
)

func TestUnreadWithoutRegions(t *testing.T) {
	if q := (&Queue{spec: &spec.Queue{}}); q.unread() {
		t.Error("a queue without regions, which operations of connections receive for, is unread")
	}
}
