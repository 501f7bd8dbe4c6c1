package spec

import (
	"regexp"
	"slices"
	"strings"
)

// schemaObject is a JSON object.
type schemaObject = map[string]any

// anyNumber is the pattern of a number written as text.
const anyNumber = `\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?`

// valueSchemas maps types to schemas, except types whose schema depends on the row.
var valueSchemas = map[keyType]schemaObject{
	typePositive:    {"type": []string{"number", "string"}, "exclusiveMinimum": 0, "pattern": "^" + anyNumber + "$"},
	typeProbability: {"type": []string{"number", "string"}, "minimum": 0, "maximum": 1, "pattern": "^" + anyNumber + "$"},
	typeBoolean:     {"enum": []any{true, false, "true", "false", "yes", "no", "on", "off"}},
	typeText:        {"type": []string{"string", "number"}},
	typeFilled:      {"type": []string{"string", "number"}, "pattern": `\S`},
	typeDuration:    {"type": []string{"number", "string"}, "minimum": 0, "pattern": "^" + anyNumber + ` *(ns|us|µs|μs|ms|s|min|h)$`},
	typeRate:        {"type": []string{"number", "string"}, "minimum": 0, "pattern": "^" + anyNumber + ` *[kMGT]?(bit/s|bps|b/s)$`},
	typeMAC:         {"type": "string", "pattern": "^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$"},
	typeIPv4:        {"type": "string", "format": "ipv4"},
	typeIPv6:        {"type": "string", "format": "ipv6"},
	typeAddress:     {"type": "string"},
	typeIPv4Prefix:  {"type": "string", "pattern": "^[0-9.]+(/[0-9]+)?$"},
	typeIPv6Prefix:  {"type": "string", "pattern": "^[0-9a-fA-F:.]+(/[0-9]+)?$"},
	typeEndpoint:    {"type": "string", "pattern": "^(tcp|udp|roce|rdma)://"},
}

// Schema returns a JSON Schema (draft 2020-12) of configuration files, generated from the rows. It covers single keys; only the parser checks keys
// against each other.
func Schema() map[string]any {
	defs := schemaObject{}
	ref := func(s *Section) schemaObject { return schemaObject{"$ref": "#/$defs/" + defName(s)} }
	var define func(s *Section, name string)
	define = func(s *Section, name string) {
		if defs[name] != nil {
			return
		}
		defs[name] = s.schema(ref)
		for _, k := range s.Keys {
			if k.Map != nil {
				define(k.Map, defName(k.Map))
			}
		}
		for _, v := range s.Variants {
			define(v, defName(v))
		}
	}
	define(documentSection, defName(documentSection))
	delete(defs, defName(documentSection))
	return schemaObject{
		"$schema":    "https://json-schema.org/draft/2020-12/schema",
		"title":      "Configuration of daqiri-run",
		"type":       "object",
		"properties": schemaObject{"daqiri": ref(daqiriSection)},
		"if":         schemaObject{"not": schemaObject{"required": []string{"daqiri"}}},
		"then":       ref(configSection),
		"$defs":      defs,
	}
}

var notWord = regexp.MustCompile(`\W+`)

// defName returns a section's name in the schema.
func defName(s *Section) string { return notWord.ReplaceAllString(s.Name, "_") }

// schema returns the schema of a section's maps. Other keys than those of the rows are invalid; a section with variants must match one of them.
func (s *Section) schema(ref func(*Section) schemaObject) schemaObject {
	keys, required := schemaObject{}, []string{}
	for i := range s.Keys {
		k := &s.Keys[i]
		keys[k.Name] = k.schema(ref)
		if k.Required && k.When == "" {
			required = append(required, k.Name)
		}
	}
	out := schemaObject{"type": "object", "properties": keys, "required": required}
	if s.Words != "" {
		out["description"] = s.Words
	}
	switch {
	case s.Variants != nil:
		var fits []any
		for _, v := range s.Variants {
			fits = append(fits, ref(v))
		}
		out["anyOf"] = fits
	case s.Flat != nil:
		return schemaObject{"anyOf": []any{with(out, "additionalProperties", false), s.Flat.schema(ref)}}
	default:
		out["additionalProperties"] = false
	}
	return out
}

// schema returns the schema of a key's values.
func (k *Key) schema(ref func(*Section) schemaObject) schemaObject {
	out := k.value(k.Type, ref)
	switch {
	case k.Type == typeList:
		out = schemaObject{"type": []string{"array", "null"}, "items": k.value(k.Items, ref)}
		if k.Required && k.When == "" {
			out = schemaObject{"type": "array", "minItems": 1, "items": k.value(k.Items, ref)}
		}
	case k.Type != typeChoice && len(k.Choices) > 0:
		out = schemaObject{"anyOf": []any{out, schemaObject{"enum": k.Choices}}}
	}
	if text := k.Does(); text != "" {
		out = with(out, "description", text)
	}
	if k.Default != nil {
		out = with(out, "default", k.Default)
	}
	return out
}

// value returns the schema of a value of this type.
func (k *Key) value(t keyType, ref func(*Section) schemaObject) schemaObject {
	switch t {
	case typeMap:
		return ref(k.Map)
	case typeChoice:
		return schemaObject{"enum": k.spellings()}
	case typeInteger:
		return schemaObject{"type": "integer", "minimum": k.Lo, "maximum": k.Hi}
	case typePorts:
		return schemaObject{"type": []string{"integer", "string"}, "minimum": k.Lo, "maximum": k.Hi, "pattern": "^[0-9]+ *- *[0-9]+$"}
	}
	return valueSchemas[t]
}

// spellings returns a choice's words, also in upper case if the parser accepts that.
func (k *Key) spellings() []string {
	list := slices.Clone(k.Choices)
	for _, w := range k.Choices {
		if k.AnyCase {
			list = append(list, strings.ToUpper(w))
		}
	}
	return list
}

// with returns a copy with one more field.
func with(o schemaObject, name string, v any) schemaObject {
	c := schemaObject{name: v}
	for key, value := range o {
		c[key] = value
	}
	return c
}
