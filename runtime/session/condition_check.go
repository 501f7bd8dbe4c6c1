package session

import (
	"errors"
	"fmt"
	"slices"

	"github.com/daqiri/daqiri-run/runtime/expr"
)

// CheckCondition says what is wrong with a condition over packet fields. Names count where all fields are known.
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

// CheckNumber says what is wrong with a number over packet fields. Names count where all fields are known.
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

// WithNames has further names of fields in front of others (nil: none), for checks alone: it does not say where they lie.
func WithNames(names []string, others Fields) Fields { return ownNames{names, others} }

type ownNames struct {
	names  []string
	others Fields
}

// Field finds a field.
func (n ownNames) Field(name string) (Field, bool) {
	if slices.Contains(n.names, name) {
		return Field{Base: BasePayload, BitWidth: 32}, true
	}
	if n.others == nil {
		return Field{}, false
	}
	return n.others.Field(name)
}

// Names lists the fields.
func (n ownNames) Names() []string {
	if n.others == nil {
		return n.names
	}
	return slices.Concat(n.names, n.others.Names())
}

// Derived finds a number that depends on the packet.
func (n ownNames) Derived(name string) (expr.Derived, bool) { return resolver{n.others}.Derived(name) }

// Constant finds the name of a value.
func (n ownNames) Constant(name string) (uint64, bool) { return resolver{n.others}.Constant(name) }
