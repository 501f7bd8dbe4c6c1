package tree

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestWalkTree(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "daqiri-run", "build/x.o", "native/dq.h", ".ci/run"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := walkTree(dir)
	if want := []string{".ci/run", "go.mod", "native/dq.h"}; err != nil || !slices.Equal(got, want) {
		t.Fatalf("got %q, %v; want %q", got, err, want)
	}
}
