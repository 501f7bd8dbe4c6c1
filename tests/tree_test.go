package tests

import (
	"testing"

	"github.com/daqiri/daqiri-run/tests/tree"
)

const (
	module  = tree.Module
	rootDir = ".." // go test runs in the package's folder
)

func sourceTree(t testing.TB) []string { return tree.Files(t) }

func readFile(t testing.TB, name string) string { return tree.Read(t, name) }
