package format

import (
	"reflect"

	"github.com/yuin/gopher-lua/ast"
)

// eachCall visits the calls of a chunk, outer calls first. It walks the tree by reflection, as some thirty node types have child nodes.
func eachCall(chunk []ast.Stmt, visit func(*ast.FuncCallExpr)) {
	var walk func(v reflect.Value, deep int)
	walk = func(v reflect.Value, deep int) {
		if deep > 200 {
			return
		}
		switch v.Kind() {
		case reflect.Interface, reflect.Pointer:
			if v.IsNil() {
				return
			}
			if c, ok := v.Interface().(*ast.FuncCallExpr); ok && v.Kind() == reflect.Pointer {
				visit(c)
			}
			walk(v.Elem(), deep+1)
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i), deep+1)
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					walk(v.Field(i), deep+1)
				}
			}
		}
	}
	walk(reflect.ValueOf(chunk), 0)
}
