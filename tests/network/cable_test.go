package network

import (
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// A cable is harness.Cable with the methods of this package's tests.
type cable struct{ *harness.Cable }

func newCable(t *testing.T) *cable { return &cable{harness.NewCable(t)} }

// cableOf makes a cable whose receiving end has so many receive queues.
func cableOf(t *testing.T, queues string) *cable { return &cable{harness.CableOf(t, queues)} }

// cableBetween makes a cable whose sending end has so many transmit queues.
func cableBetween(t *testing.T, transmit, queues string) *cable {
	return &cable{harness.CableBetween(t, transmit, queues)}
}
