package value

import (
	"reflect"
	"testing"

	"github.com/daqiri/daqiri-run/runtime/spec"
)

// TestConfigurationTypes checks that configuration has made every static type reachable from s.config read-only.
func TestConfigurationTypes(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(r reflect.Type, path string)
	walk = func(r reflect.Type, path string) {
		if seen[r] {
			return
		}
		seen[r] = true
		switch r.Kind() {
		case reflect.Interface, reflect.Chan, reflect.Func:
			t.Errorf("%s is a %s: what scripts see of it is of another type", path, r)
		case reflect.Pointer:
			walk(r.Elem(), path)
		case reflect.Slice, reflect.Map, reflect.Array:
			walk(r.Elem(), path+"[]")
		case reflect.Struct:
			for i := range r.NumField() {
				if f := r.Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
					walk(f.Type, path+"."+f.Name)
				}
			}
		}
	}
	walk(reflect.TypeFor[*spec.Plan](), "config")
}
