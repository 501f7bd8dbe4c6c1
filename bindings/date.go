package bindings

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/lua51"
	"github.com/daqiri/daqiri-run/bindings/row"
)

// osTime implements os.time on the scheduler's clock; a table argument is converted as UTC.
func osTime(c *call) int {
	if c.Arg(1) == lua.LNil {
		return c.Push(lua.LNumber(math.Floor(float64(c.rt.Scheduler.Now()) / 1e9)))
	}
	t := c.Table(1, "table")
	part := func(name string, missing int64) int {
		v := t.RawGetString(name)
		if v == lua.LNil && missing >= 0 {
			return int(missing)
		}
		f, ok := lua51.ToNumber(v)
		if !ok {
			c.ArgError(1, "field '%s': a number expected, got %s", name, row.Describe(v))
		}
		n, err := row.WholeNumber(lua.LNumber(math.Trunc(f)), -1<<31, 1<<31)
		if err != nil {
			c.ArgError(1, "field '%s': %v", name, err)
		}
		return int(n)
	}
	at := time.Date(part("year", -1), time.Month(part("month", -1)), part("day", -1),
		part("hour", 12), part("min", 0), part("sec", 0), 0, time.UTC)
	return c.Push(lua.LNumber(at.Unix()))
}

// osClock implements os.clock: seconds since the state was created, on the scheduler's clock.
func osClock(c *call) int {
	return c.Push(lua.LNumber(float64(c.rt.Scheduler.Now()-c.rt.began) / 1e9))
}

// osDate implements os.date in UTC: a table for "*t", otherwise text formatted by strftime directives.
func osDate(c *call) int {
	format := "%c"
	if c.Arg(1) != lua.LNil {
		format = strings.TrimPrefix(c.Text(1, "format text"), "!")
	}
	seconds := c.rt.Scheduler.Now() / int64(time.Second)
	if c.Arg(2) != lua.LNil {
		seconds = c.truncated(2, "time")
	}
	at := time.Unix(seconds, 0).UTC()
	if strings.HasPrefix(format, "*t") {
		t := c.L.NewTable()
		for name, v := range map[string]int{"year": at.Year(), "month": int(at.Month()), "day": at.Day(),
			"hour": at.Hour(), "min": at.Minute(), "sec": at.Second(), "wday": int(at.Weekday()) + 1,
			"yday": at.YearDay()} {
			t.RawSetString(name, lua.LNumber(v))
		}
		t.RawSetString("isdst", lua.LFalse)
		return c.Push(t)
	}
	lua51.Reserve(c.L, longestDate*uint64(len(format)))
	text, err := strftime(format, at)
	if err != nil {
		c.ArgError(1, "%v", err)
	}
	return c.Push(lua.LString(text))
}

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

// strftime formats a time by the directives of C99's strftime, and %s.
func strftime(format string, at time.Time) (string, error) {
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
