package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode"
	"unicode/utf8"
)

// manifestOf returns a manifest of a finished run with one file.
func manifestOf(t testing.TB, path, crc string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"schema": 1, "state": "finished", "files": []any{map[string]any{"path": path, "bytes": 9, "crc32c": crc}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestVerify checks files against handcrafted manifests: devices and pipes, which may be endless, are not accepted as files, an absent checksum
// is an error, and control characters are not printed. The checksum of "123456789" is computed with the polynomial of RFC 3720, appendix B.4.
func TestVerify(t *testing.T) {
	dir := t.TempDir()
	file, pipe, odd := filepath.Join(dir, "a.raw"), filepath.Join(dir, "pipe"), filepath.Join(dir, "b\x1b]0;title\a\xff.raw")
	for _, name := range []string{file, odd} {
		if err := os.WriteFile(name, []byte("123456789"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		manifest string
		bad      int
		want     string
	}{
		{manifestOf(t, file, "e3069283"), 0, "ok    " + file + ": 9 bytes, 0 packets, CRC-32C e3069283\n"},
		{manifestOf(t, file, "e3069284"), 1, "CRC-32C e3069283, e3069284 was written: its bytes were changed\n"},
		{manifestOf(t, file, ""), 1, "FAIL  " + file + ": 9 bytes, and the manifest has no CRC-32C of it\n"},
		{manifestOf(t, "/dev/zero", "e3069283"), 1, "FAIL  /dev/zero: /dev/zero is not a regular file\n"},
		{manifestOf(t, pipe, "e3069283"), 1, "is not a regular file\n"},
		{manifestOf(t, dir, "e3069283"), 1, "is not a regular file\n"},
		{manifestOf(t, "/nowhere/\x1b[2J", "e3069283"), 1, `FAIL  /nowhere/\x1b[2J: `},
		{strings.Replace(manifestOf(t, "", "e3069283"), `"path":""`, `"path":"","path_base64":"L25vd2hlcmUvYhtdMAf/"`, 1), 1, `FAIL  /nowhere/b\x1b]0\a\xff: `},
		{strings.Replace(manifestOf(t, file, "e3069283"), `"finished"`, `"finished","error":"no\u001b[31m space"`, 1), 1, `the writer met an error: no\x1b[31m space`},
	} {
		name := filepath.Join(dir, "t.manifest.json")
		if err := os.WriteFile(name, []byte(c.manifest), 0o644); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		bad, err := verify(&out, name)
		if err != nil || bad != c.bad || !strings.Contains(out.String(), c.want) || controls(out.String()) {
			t.Errorf("%s\n%d bad, %v: %q\nwant %d, %q", c.manifest, bad, err, out.String(), c.bad, c.want)
		}
	}
}

// controls reports whether text has control characters other than newlines.
func controls(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' })
}

// FuzzManifest checks that no manifest causes a panic, a hang or control characters in the output.
func FuzzManifest(f *testing.F) {
	f.Add(manifestOf(f, "/dev/zero", "e3069283"))
	f.Add(`{"schema":1,"state":"running","files_left_out":1,"files":[{}],"writer":{"name":"w","file_count":2,"naming":"\u0007"},
		"ledger":{"lines":[{"kind":"writer","name":"w","in":1,"out":2,"dropped":{"stopped":1}}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		name := filepath.Join(t.TempDir(), "t.manifest.json")
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if _, err := verify(&out, name); err == nil {
			if controls(out.String()) {
				t.Errorf("%q", out.String())
			}
		}
	})
}
