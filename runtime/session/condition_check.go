package session

import (
	"errors"
	"fmt"
	"slices"

	"github.com/daqiri/daqiri-run/runtime/expr"
)

// CheckCondition returns the error of an invalid condition over packet fields. Names are checked only if all fields are known.
func CheckCondition(where string, fields Fields, known bool) error {
	if known {
		_, err := compileWhere(where, fields)
		return err
	}
	e, err := expr.Parse(where)
	if err == nil && !e.IsCondition() {
		err = errors.New("a packet condition must be true or false: compare the number with something")
	}
	if err != nil {
		return fmt.Errorf("where %q: %w", where, err)
	}
	return nil
}

// CheckNumber returns the error of an invalid number over packet fields. The argument known has the same meaning as for CheckCondition.
func CheckNumber(text string, fields Fields, known bool) error {
	if known {
		_, _, err := compileNumber(text, fields)
		return err
	}
	e, err := expr.Parse(text)
	if err == nil && e.IsCondition() {
		err = errors.New("a number over packet fields is wanted, and this is a condition")
	}
	if err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	return nil
}

// WithNames returns Fields with additional names that precede others (nil: none). It is for checks only, as the names have no positions.
func WithNames(names []string, others Fields) Fields { return ownNames{names, others} }

type ownNames struct {
	names  []string
	others Fields
}

// Field returns a placeholder for own names.
func (n ownNames) Field(name string) (Field, bool) {
	if slices.Contains(n.names, name) {
		return Field{Base: BasePayload, BitWidth: 32}, true
	}
	if n.others == nil {
		return Field{}, false
	}
	return n.others.Field(name)
}

// Names returns own names, followed by those of others.
func (n ownNames) Names() []string {
	if n.others == nil {
		return n.names
	}
	return slices.Concat(n.names, n.others.Names())
}

// Derived resolves a number through others.
func (n ownNames) Derived(name string) (expr.Derived, bool) { return resolver{n.others}.Derived(name) }

// Constant resolves a value's name through others.
func (n ownNames) Constant(name string) (uint64, bool) { return resolver{n.others}.Constant(name) }
