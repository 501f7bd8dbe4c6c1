package bindings

import (
	"fmt"
	"math"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// osTime is os.time on the scheduler's clock; with a table, the time that it describes (UTC).
func osTime(c *call) int {
	if c.arg(1) == lua.LNil {
		return c.push(lua.LNumber(math.Floor(float64(c.rt.Scheduler.Now()) / 1e9)))
	}
	t := c.table(1, "table")
	part := func(name string, missing int64) int {
		v := t.RawGetString(name)
		if v == lua.LNil && missing >= 0 {
			return int(missing)
		}
		n, err := wholeNumber(v, -1<<31, 1<<31)
		if err != nil {
			c.argError(1, "field '%s': %v", name, err)
		}
		return int(n)
	}
	at := time.Date(part("year", -1), time.Month(part("month", -1)), part("day", -1),
		part("hour", 12), part("min", 0), part("sec", 0), 0, time.UTC)
	return c.push(lua.LNumber(at.Unix()))
}

// osClock is the seconds since the state began, on the scheduler's clock.
func osClock(c *call) int {
	return c.push(lua.LNumber(float64(c.rt.Scheduler.Now()-c.rt.began) / 1e9))
}

// osDate is os.date in UTC: with "*t" a table, else text by strftime's letters.
func osDate(c *call) int {
	format := strings.TrimPrefix(c.optStr(1, "format text", "%c"), "!")
	seconds := c.rt.Scheduler.Now() / int64(time.Second)
	if c.arg(2) != lua.LNil {
		seconds = c.whole(2, "time", -maxInt, maxInt)
	}
	at := time.Unix(seconds, 0).UTC()
	if format == "*t" {
		t := c.L.NewTable()
		for name, v := range map[string]int{"year": at.Year(), "month": int(at.Month()), "day": at.Day(),
			"hour": at.Hour(), "min": at.Minute(), "sec": at.Second(), "wday": int(at.Weekday()) + 1,
			"yday": at.YearDay()} {
			t.RawSetString(name, lua.LNumber(v))
		}
		t.RawSetString("isdst", lua.LFalse)
		return c.push(t)
	}
	reserve(c.L, longestDate*uint64(len(format)))
	text, err := strftime(format, at)
	if err != nil {
		c.argError(1, "%v", err)
	}
	return c.push(lua.LString(text))
}

// longestDate is more than any two characters of a format become.
const longestDate = 16

// strftime renders the letters of C's strftime that don't depend on a language or a zone.
func strftime(format string, at time.Time) (string, error) {
	layouts := map[byte]string{'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'c': "Mon Jan _2 15:04:05 2006",
		'd': "02", 'D': "01/02/06", 'F': "2006-01-02", 'H': "15", 'I': "03", 'm': "01", 'M': "04", 'p': "PM", 'S': "05",
		'T': "15:04:05", 'x': "01/02/06", 'X': "15:04:05", 'y': "06", 'Y': "2006", 'Z': "MST", 'z': "-0700"}
	var b strings.Builder
	for {
		plain, rest, found := strings.Cut(format, "%")
		b.WriteString(plain)
		switch {
		case !found:
			return b.String(), nil
		case rest == "":
			return "", fmt.Errorf("a '%%' at the end")
		case rest[0] == '%':
			b.WriteByte('%')
		case rest[0] == 'j':
			fmt.Fprintf(&b, "%03d", at.YearDay())
		case layouts[rest[0]] != "":
			b.WriteString(at.Format(layouts[rest[0]]))
		default:
			return "", fmt.Errorf("unknown directive '%%%c'", rest[0])
		}
		format = rest[1:]
	}
}
