package look

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/picture"
)

// PNG writes the pictures of each stream into a folder, which it creates, and returns the files. A picture without data is left out.
func (r *Result) PNG(dir string) (files []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot create the folder of the pictures: %w", err)
	}
	save := func(name string, write func(io.Writer) error) {
		if name = filepath.Join(dir, name+".png"); err == nil {
			err = picture.Save(name, true, write)
			files = append(files, name)
		}
	}
	var all []*picture.Figures
	numbered := false
	for _, s := range r.Streams {
		all, numbered = append(all, &s.Figures), numbered || s.Numbered
		for _, kind := range picture.Kinds() {
			if s.Check(kind) == nil {
				save(fileWords(s.Name)+kind, func(w io.Writer) error { return s.Figures.PNG(w, kind) })
			}
		}
	}
	if numbered {
		save("gaps", func(w io.Writer) error { return picture.GapMap(w, all, r.By) })
	}
	return files, err
}

var notInFiles = regexp.MustCompile(`[^A-Za-z0-9]+`)

// fileWords returns the start of a file's name for a stream's name.
func fileWords(name string) string {
	if name == "" {
		return ""
	}
	return strings.Trim(notInFiles.ReplaceAllString(name, "-"), "-") + "-"
}
