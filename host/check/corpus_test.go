package check

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/bindings"
)

// root is the repository's root.
const root = "../.."

// given matches globals that are provided by a test's Go code, a document's context, or the words that replace them in a template.
func given(fault string) bool { return strings.Contains(fault, ": undefined global '") }

// TestNoFalseAlarms checks all scripts of the repository, each of which runs in some test: none may have errors.
func TestNoFalseAlarms(t *testing.T) {
	n := 0
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".lua" || strings.HasSuffix(file, ".d.lua") {
			return err
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		n++
		for _, f := range Script(file, string(source), options) {
			provided := strings.Contains(file, "bindings/suite/testdata/api/") || strings.Contains(file, "host/cli/template/")
			if !provided || !given(f.Error()) {
				t.Error(f)
			}
		}
		return nil
	})
	if err != nil || n < 150 {
		t.Errorf("%d scripts, %v", n, err)
	}
}

// TestScriptsInTests checks the scripts in txtar test scripts, except those that are expected to fail.
func TestScriptsInTests(t *testing.T) {
	files, err := filepath.Glob(root + "/tests/cli/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split("\n"+string(text), "\n-- ")[1:] {
			name, source, _ := strings.Cut(part, " --\n")
			if !strings.HasSuffix(name, ".lua") || strings.HasPrefix(filepath.Base(file), "check") || strings.HasPrefix(filepath.Base(file), "script_error") {
				continue
			}
			n++
			for _, f := range Script(filepath.Join(t.TempDir(), name), source, options) {
				t.Errorf("%s: %v", file, f)
			}
		}
	}
	if n < 20 {
		t.Errorf("%d scripts", n)
	}
}

// TestDocuments checks the code blocks of documents.
func TestDocuments(t *testing.T) {
	files, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range append(files, root+"/README.md", root+"/scripts/README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "```lua\n")[1:] {
			block, _, _ := strings.Cut(part, "```")
			n++
			for _, f := range Script(file, "local daqiri = require 'daqiri'; local s = daqiri.open(config); "+block, options) {
				if !given(f.Error()) {
					t.Error(f)
				}
			}
		}
	}
	if n < 8 {
		t.Errorf("%d blocks", n)
	}
}

// objects declares the object names used in examples of the reference.
const objects = `local daqiri = require "daqiri"
local s = daqiri.open(config)
local q, tx, i, disk, ctl, k = s:rx_queue(), s:tx_queue(), s:interface("a"), s:stage("disk"), daqiri.control{ tcp = "x" }, daqiri.kernel(options)
local b, tpl, st, w, t, f = tx:alloc(1), tx:template(options), s:stage("x"), s:stage("w"), daqiri.task(print), daqiri.format(name)
local a, p, col, timer, at, u, c = b, b:packet(1), b:column("len"), s:every(1, print), daqiri.now(), daqiri.u64(1), i:connect(options)
local op, lease, present, sem = k:launch(), c:lend("x"), b.present, k.semaphores[1]
`

// TestExamples checks the reference's examples.
func TestExamples(t *testing.T) {
	for _, s := range bindings.Reference() {
		for _, n := range s.Names {
			for _, f := range Script(fmt.Sprintf("%s%s", s.Prefix(&n), n.Name), objects+n.Example, options) {
				if !given(f.Error()) {
					t.Errorf("%v\n%s", f, n.Example)
				}
			}
		}
	}
}
