package harness

import (
	"bytes"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// PacketsIn asks capinfos for the number of packets of a capture. One whose writer died may end within a record.
func PacketsIn(t *testing.T, path string, died bool) int {
	t.Helper()
	cmd := exec.Command("capinfos", "-T", "-r", "-c", "-m", path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if died && strings.Contains(stderr.String(), "cut short in the middle of a packet") {
		err = nil
	}
	fields := strings.Fields(strings.ReplaceAll(strings.TrimSpace(string(out)), ",", " "))
	if err != nil || len(fields) == 0 {
		t.Fatalf("capinfos %s: %v\n%s%s", path, err, out, stderr.String())
	}
	n, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		t.Fatalf("capinfos: %s", out)
	}
	return n
}

// LedgerJSON is what the comparison reads of a summary.
type LedgerJSON struct {
	Lines []struct {
		Kind, Name            string
		QueueID               int `json:"queue_id"`
		In, Out, Held, Bursts uint64
		InBytes               uint64 `json:"in_bytes"`
		OutBytes              uint64 `json:"out_bytes"`
		Dropped, Extra        map[string]uint64
		Histograms            struct {
			BurstSize   *histogramJSON `json:"burst_size"`
			HandlerTime *histogramJSON `json:"handler_time"`
		}
		Flows []struct {
			ID             uint32
			Name           string
			Packets, Bytes uint64
		}
	}
}

// histogramJSON is what it reads of a histogram.
type histogramJSON struct{ N, Sum, Max uint64 }
