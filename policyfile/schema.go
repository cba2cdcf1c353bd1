package policyfile

import (
	_ "embed"
	"encoding/json"
	"slices"
)

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of a file, for editors and other
// programs that check one. It is made from the kit's types. What it accepts has the
// form of a file; [Load] knows more: what fits together, and that names are names.
func Schema() []byte { return slices.Clone(schema) }

// schemaID is where the schema says it is.
const schemaID = "https://github.com/holdfast-go/holdfast/policyfile/schema.json"

// schemaOf makes the schema. describe returns what a field of a Go type is for.
func schemaOf(describe func(typ, field string) string) map[string]any {
	policies := schemaOfShape(policyShape(), describe)
	return map[string]any{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"$id":         schemaID,
		"title":       "Policies of a holdfast kit",
		"description": "What a description says of zero holds for a field that is left out. A layer that is left out is inherited.",
		"type":        "object",
		"properties": map[string]any{
			"wire": map[string]any{
				"enum": []any{"grpc", "http"}, "description": "How the names of methods are read. In YAML it comes first.",
			},
			"name":    map[string]any{"type": "string", "minLength": 1, "description": describe("holdfast.Config", "Name")},
			"default": map[string]any{"$ref": "#/$defs/policy", "description": describe("holdfast.Config", "Default")},
			"methods": map[string]any{
				"type": "object", "additionalProperties": map[string]any{"$ref": "#/$defs/policy"},
				"propertyNames": map[string]any{"not": map[string]any{"const": "<<"}},
				"description":   describe("holdfast.Config", "Methods"),
			},
		},
		"required": []any{"wire"}, "additionalProperties": false,
		"$defs": map[string]any{"policy": policies},
	}
}

func schemaOfShape(s *shape, describe func(typ, field string) string) map[string]any {
	var words []any
	for _, w := range s.words {
		words = append(words, w.text)
	}
	if s.is == wordsOnly {
		return map[string]any{"enum": words}
	}
	own := map[string]any{}
	switch s.is {
	case group:
		properties := map[string]any{}
		for _, f := range s.fields {
			property := schemaOfShape(f.shape, describe)
			if text := describe(s.typ.String(), f.goes); text != "" {
				property["description"] = text
			}
			properties[f.name] = property
		}
		own = map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	case toggle:
		own["type"] = "boolean"
	case integer:
		own["type"] = "integer"
	case decimal:
		own["type"] = "number"
	case duration:
		own = map[string]any{"type": "string", "pattern": durationForm}
		if !s.zero {
			own["not"] = map[string]any{"pattern": "^[^1-9]*$"}
		}
	}
	if s.is == integer || s.is == decimal {
		if s.zero {
			own["minimum"] = 0
		} else {
			own["exclusiveMinimum"] = 0
		}
	}
	if len(words) == 0 {
		return own
	}
	return map[string]any{"anyOf": []any{map[string]any{"enum": words}, own}}
}

// schemaText returns a schema as it is committed.
func schemaText(s map[string]any) []byte {
	text, _ := json.MarshalIndent(s, "", "  ")
	return append(text, '\n')
}
