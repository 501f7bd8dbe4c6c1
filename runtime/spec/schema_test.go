package spec

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := json.Marshal(schema.JSON())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("config.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("config.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(blankDirective([]byte(text)), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestSchema checks that the schema accepts all valid configurations, including those of scripts, and that it rejects unknown keys and values out of
// range like the parser.
func TestSchema(t *testing.T) {
	s := compiled(t)
	docs := documents(t)
	files, err := filepath.Glob("../../scripts/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no configurations of scripts: ", err)
	}
	for _, f := range files {
		docs = append(docs, document{filepath.Base(f), read(t, f)})
	}
	for _, d := range docs {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			if err := s.Validate(decoded(t, d.text)); err != nil {
				t.Fatal(err)
			}
			for _, pl := range places(t, d) {
				with := "99999999999999999999"
				switch {
				case pl.key:
					with = d.text[pl.from:pl.to] + "q"
				case pl.node.tag != "int":
					continue
				}
				if s.Validate(decoded(t, d.text[:pl.from]+with+d.text[pl.to:])) == nil {
					t.Errorf("%s:%d = %s is valid", pl.path, pl.line, with)
				}
			}
		})
	}
}

// TestSchemaExamples checks that the examples of the reference are valid.
func TestSchemaExamples(t *testing.T) {
	s := compiled(t)
	for _, e := range examples(t) {
		if err := s.Validate(e.config); err != nil {
			t.Errorf("%s: %v", e.name, err)
		}
	}
}
