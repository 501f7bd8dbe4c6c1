package spec

import (
	"fmt"

	"github.com/daqiri/daqiri-run/runtime/suggest"
)

// didYouMean returns the end of an error message: empty, or `; did you mean "batch_size"?`.
func didYouMean(name string, known []string) string {
	if s := suggest.Nearest(name, known); s != "" {
		return fmt.Sprintf("; did you mean %q?", s)
	}
	return ""
}
