package state

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"
)

// Time formats of log lines: only the time of day on a terminal, otherwise the full date with zone.
const (
	clockFormat = "15:04:05.000"
	dateFormat  = "2006-01-02T15:04:05.000Z07:00"
)

// LogFormats are the formats accepted by ConfigureLogger.
var LogFormats = []string{"text", "json"}

// LogLevels are the levels accepted by ConfigureLogger and by scripts.
var LogLevels = []string{"debug", "info", "warn", "error"}

// NewLogger returns a logger that writes text at level info to w.
func NewLogger(w io.Writer, color bool) *logrus.Logger {
	l := logrus.New()
	l.SetOutput(w)
	l.SetLevel(logrus.InfoLevel)
	l.SetFormatter(textFormatter(color))
	return l
}

// ConfigureLogger sets level and format ("text" or "json") of g.Logger; an empty string leaves the setting unchanged.
func (g *Global) ConfigureLogger(level, format string) error {
	if level != "" {
		parsed, err := logrus.ParseLevel(level)
		if err != nil || !slices.Contains(LogLevels, level) {
			return fmt.Errorf("log level %q: not one of %s", level, strings.Join(LogLevels, ", "))
		}
		g.Logger.SetLevel(parsed)
	}
	switch format {
	case "":
	case "text":
		g.Logger.SetFormatter(textFormatter(g.ColorStderr()))
	case "json":
		g.Logger.SetFormatter(&logrus.JSONFormatter{TimestampFormat: dateFormat})
	default:
		return fmt.Errorf("log format %q: not one of %s", format, strings.Join(LogFormats, ", "))
	}
	return nil
}

// silent is a level that is never logged; scripts set it as "off".
const silent = logrus.PanicLevel

// LogLevel sets the minimum level of log lines, one of LogLevels or "off", unless set is empty. It returns the previous level. Safe for
// concurrent use.
func (g *Global) LogLevel(set string) (was string) {
	was = g.Logger.GetLevel().String()
	switch g.Logger.GetLevel() {
	case logrus.WarnLevel:
		was = "warn"
	case silent:
		was = "off"
	}
	if set == "off" {
		g.Logger.SetLevel(silent)
	} else if level, err := logrus.ParseLevel(set); err == nil {
		g.Logger.SetLevel(level)
	}
	return was
}

func textFormatter(color bool) logrus.Formatter {
	f := &logrus.TextFormatter{ForceColors: color, DisableColors: !color, FullTimestamp: true, TimestampFormat: dateFormat}
	if color {
		f.TimestampFormat = clockFormat
	}
	return f
}
