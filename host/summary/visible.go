package summary

import (
	"reflect"

	"github.com/daqiri/daqiri-run/host/state"
)

// visible returns a deep copy of v with all strings escaped for a terminal (state.Visible), as names, reasons and errors originate in
// configurations, files and other programs. Newlines in Error and Errors are kept. Unexported fields are shared with v.
func visible[T any](v T) T {
	out := reflect.New(reflect.TypeFor[T]()).Elem()
	makeVisible(out, reflect.ValueOf(&v).Elem(), state.Visible)
	return out.Interface().(T)
}

func makeVisible(to, from reflect.Value, text func(string) string) {
	to.Set(from)
	switch from.Kind() {
	case reflect.String:
		to.SetString(text(from.String()))
	case reflect.Pointer:
		if !from.IsNil() {
			to.Set(reflect.New(from.Type().Elem()))
			makeVisible(to.Elem(), from.Elem(), text)
		}
	case reflect.Slice:
		if from.IsNil() || !hasText(from.Type().Elem()) {
			return
		}
		to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			makeVisible(to.Index(i), from.Index(i), text)
		}
	case reflect.Map:
		if !from.IsNil() {
			visibleMap(to, from, text)
		}
	case reflect.Struct:
		for i := range from.NumField() {
			switch field := from.Type().Field(i); {
			case !field.IsExported():
			case field.Name == "Error" || field.Name == "Errors":
				makeVisible(to.Field(i), from.Field(i), state.VisibleLines)
			default:
				makeVisible(to.Field(i), from.Field(i), text)
			}
		}
	}
}

func visibleMap(to, from reflect.Value, text func(string) string) {
	to.Set(reflect.MakeMapWithSize(from.Type(), from.Len()))
	for each := from.MapRange(); each.Next(); {
		key, value := reflect.New(from.Type().Key()).Elem(), reflect.New(from.Type().Elem()).Elem()
		makeVisible(key, each.Key(), text)
		makeVisible(value, each.Value(), text)
		to.SetMapIndex(key, value)
	}
}

// hasText reports whether values of a type may contain strings; the many numbers of ledgers need no copy.
func hasText(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Pointer, reflect.Slice, reflect.Map, reflect.Struct, reflect.Array, reflect.Interface:
		return true
	}
	return false
}
