package script

import (
	"errors"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/host/repl"
	"github.com/daqiri/daqiri-run/runtime/session"
)

// Trace formats a Lua error: script position and message, then the Lua stack, then the chain of wrapped Go errors unless the message contains
// them. L may be nil; an error value that is not a string is then shown as its type.
func Trace(L *lua.LState, err error) string {
	var raised *lua.ApiError
	if !errors.As(err, &raised) {
		return err.Error()
	}
	var b strings.Builder
	if _, text := raised.Object.(lua.LString); L == nil && !text && raised.Object != nil {
		b.WriteString(raised.Object.String())
	} else {
		b.WriteString(repl.FormatError(L, err))
	}
	text := raised.Error()
	for _, cause := range chain(raised.Cause) {
		if !strings.Contains(text, cause) {
			b.WriteString("\ncaused by: " + strings.ReplaceAll(cause, "\n", "\n  "))
			text = cause
		}
	}
	return b.String()
}

// chain returns the texts of err and the errors that it wraps, outermost first, without plain status codes.
func chain(err error) []string {
	var texts []string
	for ; err != nil; err = errors.Unwrap(err) {
		if !session.IsStatus(err) {
			texts = append(texts, err.Error())
		}
	}
	return texts
}
