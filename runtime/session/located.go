package session

import (
	"fmt"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/spec"
)

// located prefixes an engine's error with its position in the configuration.
func located(at spec.Source, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s%w", strings.TrimSuffix(at.Errorf("\x00").Error(), "\x00"), err)
}
