package spec

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"sort"
	"strings"
)

// quantity matches a decimal number and an optional unit. Digits and exponent are limited, which bounds the size of numbers.
var quantity = regexp.MustCompile(`^\+?([0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,2})?\s*([A-Za-zµμ/]*)$`)

var rateUnits = map[string]int64{"bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "Tbit/s": 1e12}

var sizeUnits = map[string]int64{
	"B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

var durationUnits = map[string]int64{
	"ns": 1, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9,
}

// A NoUnitError reports text without a required unit, which would be ambiguous.
type NoUnitError struct{ Text, Unit string }

// Error returns a message with the smallest unit as an example.
func (e *NoUnitError) Error() string {
	return fmt.Sprintf("%q has no unit: write it like %q", e.Text, e.Text+e.Unit)
}

// OrNumber adds to a NoUnitError that a number in this unit is accepted as well.
func OrNumber(err error, unit string) error {
	if e := (*NoUnitError)(nil); errors.As(err, &e) {
		return fmt.Errorf("%q has no unit: give the number %s, or text with a unit, %q", e.Text, e.Text, e.Text+unit)
	}
	return err
}

// ParseRate parses a rate such as "10Gbit/s" or "9.5Gbps" and returns bits per second. Like the other two it returns a *NoUnitError for a number
// alone.
func ParseRate(text string) (int64, error) {
	return parseQuantity(text, "rate", "10Gbit/s", "bits per second", "bit/s", rateUnits)
}

// ParseSize parses a size such as "8KiB", "64GiB" or "1MB" and returns bytes.
func ParseSize(text string) (int64, error) {
	return parseQuantity(text, "size", "8KiB", "bytes", "B", sizeUnits)
}

// ParseDuration parses a duration such as "2us", "5ms" or "1.5s" and returns nanoseconds.
func ParseDuration(text string) (int64, error) {
	return parseQuantity(text, "duration", "2us", "nanoseconds", "ns", durationUnits)
}

// parseQuantity computes exactly and rejects results that are not an integer in the base unit.
func parseQuantity(text, what, example, base, smallest string, units map[string]int64) (int64, error) {
	m := quantity.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return 0, fmt.Errorf("%q is not a %s (write it like %q)", text, what, example)
	}
	if m[3] == "" {
		return 0, &NoUnitError{m[1] + m[2], smallest}
	}
	unit := m[3]
	for _, end := range []string{"bps", "b/s"} {
		if p, ok := strings.CutSuffix(unit, end); ok {
			unit = p + "bit/s"
		}
	}
	scale, ok := units[unit]
	if !ok {
		return 0, fmt.Errorf("%q has an unknown unit %q (known: %s)", text, m[3], unitNames(units))
	}
	r, ok := new(big.Rat).SetString(m[1] + m[2])
	if !ok {
		return 0, fmt.Errorf("%q is not a %s (write it like %q)", text, what, example)
	}
	r.Mul(r, new(big.Rat).SetInt64(scale))
	switch {
	case !r.IsInt():
		return 0, fmt.Errorf("%q is not a whole number of %s", text, base)
	case !r.Num().IsInt64():
		return 0, fmt.Errorf("%q is too large", text)
	}
	return r.Num().Int64(), nil
}

func unitNames(units map[string]int64) string {
	var names []string
	for u := range units {
		if u != "μs" && u != "KB" {
			names = append(names, u)
		}
	}
	sort.Slice(names, func(i, j int) bool {
		a, b := units[names[i]], units[names[j]]
		return a < b || a == b && names[i] < names[j]
	})
	return strings.Join(names, ", ")
}
