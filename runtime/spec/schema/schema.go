package schema

import (
	"regexp"
	"slices"
	"strings"
)

// object is a JSON object.
type object = map[string]any

// anyNumber is the pattern of a number written as text.
const anyNumber = `\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?`

// valueSchemas maps types to schemas, except types whose schema depends on the row.
var valueSchemas = map[Type]object{
	TypePositive:    {"type": []string{"number", "string"}, "exclusiveMinimum": 0, "pattern": "^" + anyNumber + "$"},
	TypeProbability: {"type": []string{"number", "string"}, "minimum": 0, "maximum": 1, "pattern": "^" + anyNumber + "$"},
	TypeBoolean:     {"enum": []any{true, false, "true", "false", "yes", "no", "on", "off"}},
	TypeText:        {"type": []string{"string", "number"}},
	TypeFilled:      {"type": []string{"string", "number"}, "pattern": `\S`},
	TypeDuration:    {"type": []string{"number", "string"}, "minimum": 0, "pattern": "^" + anyNumber + ` *(ns|us|µs|μs|ms|s|min|h)$`},
	TypeRate:        {"type": []string{"number", "string"}, "minimum": 0, "pattern": "^" + anyNumber + ` *[kMGT]?(bit/s|bps|b/s)$`},
	TypeMAC:         {"type": "string", "pattern": "^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$"},
	TypeIPv4:        {"type": "string", "format": "ipv4"},
	TypeIPv6:        {"type": "string", "format": "ipv6"},
	TypeAddress:     {"type": "string"},
	TypeIPv4Prefix:  {"type": "string", "pattern": "^[0-9.]+(/[0-9]+)?$"},
	TypeIPv6Prefix:  {"type": "string", "pattern": "^[0-9a-fA-F:.]+(/[0-9]+)?$"},
	TypeEndpoint:    {"type": "string", "pattern": "^(tcp|udp|roce|rdma)://"},
}

// JSON returns a JSON Schema (draft 2020-12) of configuration files, generated from the rows. It covers single keys; only the parser checks keys
// against each other.
func JSON() map[string]any {
	defs := object{}
	ref := func(s *Section) object { return object{"$ref": "#/$defs/" + defName(s)} }
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
	define(DocumentSection, defName(DocumentSection))
	delete(defs, defName(DocumentSection))
	return object{
		"$schema":    "https://json-schema.org/draft/2020-12/schema",
		"title":      "Configuration of daqiri-run",
		"type":       "object",
		"properties": object{"daqiri": ref(DaqiriSection)},
		"if":         object{"not": object{"required": []string{"daqiri"}}},
		"then":       ref(ConfigSection),
		"$defs":      defs,
	}
}

var notWord = regexp.MustCompile(`\W+`)

// defName returns a section's name in the schema.
func defName(s *Section) string { return notWord.ReplaceAllString(s.Name, "_") }

// schema returns the schema of a section's maps. Other keys than those of the rows are invalid; a section with variants must match one of them.
func (s *Section) schema(ref func(*Section) object) object {
	keys, required := object{}, []string{}
	for i := range s.Keys {
		k := &s.Keys[i]
		keys[k.Name] = k.schema(ref)
		if k.Required && k.When == "" {
			required = append(required, k.Name)
		}
	}
	out := object{"type": "object", "properties": keys, "required": required}
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
		return object{"anyOf": []any{with(out, "additionalProperties", false), s.Flat.schema(ref)}}
	default:
		out["additionalProperties"] = false
	}
	return out
}

// schema returns the schema of a key's values.
func (k *Key) schema(ref func(*Section) object) object {
	out := k.value(k.Type, ref)
	switch {
	case k.Type == TypeList:
		out = object{"type": []string{"array", "null"}, "items": k.value(k.Items, ref)}
		if k.Required && k.When == "" {
			out = object{"type": "array", "minItems": 1, "items": k.value(k.Items, ref)}
		}
	case k.Type != TypeChoice && len(k.Choices) > 0:
		out = object{"anyOf": []any{out, object{"enum": k.Choices}}}
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
func (k *Key) value(t Type, ref func(*Section) object) object {
	switch t {
	case TypeMap:
		return ref(k.Map)
	case TypeChoice:
		return object{"enum": k.spellings()}
	case TypeInteger:
		return object{"type": "integer", "minimum": k.Lo, "maximum": k.Hi}
	case TypePorts:
		return object{"type": []string{"integer", "string"}, "minimum": k.Lo, "maximum": k.Hi, "pattern": "^[0-9]+ *- *[0-9]+$"}
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
func with(o object, name string, v any) object {
	c := object{name: v}
	for key, value := range o {
		c[key] = value
	}
	return c
}
