package manual

import (
	"strings"

	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// Config describes the keys of a configuration.
var Config = Topic{Name: "config", File: "configuration", Short: "the keys of a configuration", Parts: configParts}

func configParts() []Part {
	parts := []Part{{Words: "A configuration is a YAML file, YAML text or a Lua table: below `daqiri: cfg:`, beside sections of your own, or on its own. " +
		"An unknown key is an error, as is a value that the key can't have; all errors are reported at once, with line and path. Numbers are whole, decimal, " +
		"0x or 0o (YAML 1.2), without quotes. `daqiri-run check FILE` checks one, `daqiri-run config generate` makes one from options, " +
		"`--set PATH=VALUE` overrides a key, `daqiri-run help KEY` prints a key of those below, and " +
		"`daqiri-run config schema` writes them as JSON Schema, with which editors complete and check keys."}}
	for _, p := range schema.Places() {
		table := &Table{Columns: []string{"key", "takes", "need", "what it does"}}
		for _, k := range p.Rows() {
			table.Rows = append(table.Rows, []string{"`" + k.Name + "`", k.Takes(), k.Need(), k.Does()})
		}
		parts = append(parts, Part{Head: "`" + p.Name + "`"})
		if p.Paths[0] != p.Name && p.Paths[0] != "" {
			parts = append(parts, Part{Lines: strings.Join(p.Paths, "\n")})
		}
		parts = append(parts, Part{Words: p.Words}, Part{Table: table})
		for _, e := range p.Examples {
			parts = append(parts, Part{Lines: strings.Trim(e, "\n")})
		}
	}
	return parts
}

// ConfigKeys lists the names of all keys, without duplicates.
func ConfigKeys() (names []string) {
	seen := map[string]bool{}
	for _, p := range schema.Places() {
		for _, k := range p.Rows() {
			if !seen[k.Name] {
				names = append(names, k.Name)
			}
			seen[k.Name] = true
		}
	}
	return names
}

// ConfigKey returns a page about one key: its rows in all sections that have it.
func ConfigKey(name string) Topic {
	return Topic{Name: name, Short: name, Parts: func() (parts []Part) {
		for _, p := range schema.Places() {
			for _, k := range p.Rows() {
				if k.Name != name {
					continue
				}
				for i, path := range p.Paths {
					p.Paths[i] = "`" + strings.TrimPrefix(path+"."+name, ".") + "`"
				}
				words := title(k.Takes()) + "; " + k.Need() + ". " + k.Does()
				if k.Map != nil {
					words += " Keys: `" + strings.Join(k.Map.Names(), "`, `") + "`."
				}
				parts = append(parts, Part{Head: strings.Join(p.Paths, "\n")}, Part{Words: words})
			}
		}
		return parts
	}}
}
