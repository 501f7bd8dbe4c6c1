package lua51

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// longestDate is an upper bound on the bytes produced per two characters of a format.
const longestDate = 16

// layouts maps strftime directives to layouts of package time; those that depend on a locale are as in locale "C".
var layouts = map[byte]string{'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'c': "Mon Jan _2 15:04:05 2006",
	'd': "02", 'D': "01/02/06", 'e': "_2", 'F': "2006-01-02", 'h': "Jan", 'H': "15", 'I': "03", 'm': "01", 'M': "04", 'n': "\n", 'p': "PM",
	'r': "03:04:05 PM", 'R': "15:04", 'S': "05", 't': "\t", 'T': "15:04:05", 'x': "01/02/06", 'X': "15:04:05", 'y': "06", 'Y': "2006",
	'z': "-0700", '%': "%"}

// directives maps the remaining directives to functions.
var directives = map[byte]func(at time.Time) string{
	'C': func(at time.Time) string { return fmt.Sprintf("%02d", at.Year()/100) },
	'g': func(at time.Time) string { year, _ := at.ISOWeek(); return fmt.Sprintf("%02d", year%100) },
	'G': func(at time.Time) string { year, _ := at.ISOWeek(); return strconv.Itoa(year) },
	'j': func(at time.Time) string { return fmt.Sprintf("%03d", at.YearDay()) },
	's': func(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) },
	'u': func(at time.Time) string { return strconv.Itoa((int(at.Weekday())+6)%7 + 1) },
	'U': func(at time.Time) string { return weekOfYear(at, time.Sunday) },
	'V': func(at time.Time) string { _, week := at.ISOWeek(); return fmt.Sprintf("%02d", week) },
	'w': func(at time.Time) string { return strconv.Itoa(int(at.Weekday())) },
	'W': func(at time.Time) string { return weekOfYear(at, time.Monday) },
	'Z': func(time.Time) string { return "GMT" },
}

// weekOfYear returns the week of the year as two digits. Week 1 starts at the first such weekday; earlier days are in week 00.
func weekOfYear(at time.Time, first time.Weekday) string {
	sinceFirst := (int(at.Weekday()) - int(first) + 7) % 7
	return fmt.Sprintf("%02d", (at.YearDay()+6-sinceFirst)/7)
}

// Strftime formats a time by the directives of C99's strftime, and %s. It raises if the text would exceed the limit on memory.
func Strftime(L *lua.LState, format string, at time.Time) (string, error) {
	Reserve(L, longestDate*uint64(len(format)))
	var b strings.Builder
	for {
		plain, rest, found := strings.Cut(format, "%")
		b.WriteString(plain)
		switch {
		case !found:
			return b.String(), nil
		case rest == "":
			return "", fmt.Errorf("a '%%' at the end")
		case layouts[rest[0]] != "":
			b.WriteString(at.Format(layouts[rest[0]]))
		case directives[rest[0]] != nil:
			b.WriteString(directives[rest[0]](at))
		default:
			return "", fmt.Errorf("unknown directive '%%%c'", rest[0])
		}
		format = rest[1:]
	}
}
