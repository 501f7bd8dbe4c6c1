package look

import (
	"bufio"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// PNG writes the pictures of each stream into a folder, which it creates, and returns the files. A picture without data is left out.
func (r *Result) PNG(dir string) (files []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot create the folder of the pictures: %w", err)
	}
	write := func(name string, c *chart) {
		if name = filepath.Join(dir, name+".png"); err == nil {
			err = writePNG(name, c)
			files = append(files, name)
		}
	}
	for _, s := range r.Streams {
		prefix := fileWords(s.Name)
		for _, p := range s.pictures() {
			write(prefix+p.name, p.draw())
		}
	}
	if slices.ContainsFunc(r.Streams, func(s *Stream) bool { return s.Numbered }) {
		write("gaps", r.gapMap())
	}
	return files, err
}

// picture is a picture of a stream.
type picture struct {
	name string // of its file
	draw func() *chart
}

// pictures returns the pictures for which the stream has data.
func (s *Stream) pictures() (all []picture) {
	if s.Spectrum.Blocks > 0 {
		all = append(all, picture{"spectrum", s.spectrum}, picture{"waterfall", s.waterfall})
	}
	if s.Levels.Count > 0 {
		all = append(all, picture{"histogram", s.histogram}, picture{"time", s.timeSeries})
		if s.Constellation != nil {
			all = append(all, picture{"constellation", s.constellation})
		}
	}
	return all
}

var notInFiles = regexp.MustCompile(`[^A-Za-z0-9]+`)

// fileWords returns the start of a file's name for a stream's name.
func fileWords(name string) string {
	if name == "" {
		return ""
	}
	return strings.Trim(notInFiles.ReplaceAllString(name, "-"), "-") + "-"
}

func writePNG(name string, c *chart) error {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("cannot write a picture: %w", err)
	}
	w := bufio.NewWriter(f)
	if err = png.Encode(w, c.RGBA); err == nil {
		err = w.Flush()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("cannot write the picture %s: %w", name, err)
	}
	return nil
}
