package policyfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-go/holdfast/internal/check"
)

// YAML returns the file as text that [Load] reads back. It returns an error that
// names what no file can hold, such as a function.
func (f *File) YAML() ([]byte, error) {
	root, err := f.tree()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(yamlNode(root)); err != nil {
		return nil, fmt.Errorf("policyfile: %w", err)
	}
	return b.Bytes(), nil
}

// JSON is [File.YAML] in JSON.
func (f *File) JSON() ([]byte, error) {
	root, err := f.tree()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	writeJSON(&b, root, "\n")
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// tree returns the nodes of the file.
func (f *File) tree() (*node, error) {
	var faults check.Faults
	if f.Wire != "grpc" && f.Wire != "http" {
		faults.Add("Wire", strconv.Quote(f.Wire), "must be grpc or http")
	}
	if !reflect.ValueOf(f.Hooks).IsZero() {
		faults.Add("Hooks", nil, "are functions, which no file can hold")
	}
	root := &node{kind: mapping}
	root.put("wire", &node{kind: text, text: f.Wire})
	if f.Name != "" {
		root.put("name", &node{kind: text, text: f.Name})
	}
	if n := encode(policyShape(), reflect.ValueOf(f.Default), "Default", &faults); len(n.pairs) > 0 {
		root.put("default", n)
	}
	if len(f.Methods) > 0 {
		methods := &node{kind: mapping}
		for _, name := range slices.Sorted(maps.Keys(f.Methods)) {
			methods.put(name, encode(policyShape(), reflect.ValueOf(f.Methods[name]), fmt.Sprintf("Methods[%q]", name), &faults))
		}
		root.put("methods", methods)
	}
	return root, faults.Err("policyfile")
}

func (n *node) put(key string, value *node) {
	n.pairs = append(n.pairs, pair{&node{kind: text, text: key}, value})
}

// encode returns the node of a value. It adds a fault for each field that is set and
// no data.
func encode(s *shape, v reflect.Value, path string, faults *check.Faults) *node {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	for _, w := range s.words {
		if same(w.value, v) {
			return &node{kind: text, text: w.text}
		}
	}
	switch s.is {
	case toggle:
		return &node{kind: boolean, text: strconv.FormatBool(v.Bool())}
	case integer:
		return &node{kind: number, text: strconv.FormatInt(v.Int(), 10)}
	case decimal:
		return &node{kind: number, text: strconv.FormatFloat(v.Float(), 'g', -1, 64)}
	case duration:
		return &node{kind: text, text: time.Duration(v.Int()).String()}
	case wordsOnly:
		faults.Add(path, v.Interface(), "is nothing that a file can hold; it could be %v", s)
		return &node{}
	}
	n := &node{kind: mapping}
	data := map[int]bool{}
	for _, f := range s.fields {
		data[f.index] = true
		if value := v.Field(f.index); !value.IsZero() {
			n.put(f.name, encode(f.shape, value, path+"."+f.goes, faults))
		}
	}
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() && !data[i] && !v.Field(i).IsZero() {
			faults.Add(path+"."+f.Name, nil, "is no data, and no file can hold it")
		}
	}
	return n
}

// same reports whether a value is the one that a word stands for. Those of groups
// are marked by a field that nobody else can set.
func same(word, v reflect.Value) bool {
	if v.Kind() != reflect.Struct {
		return word.Convert(v.Type()).Equal(v)
	}
	for i := range v.NumField() {
		if f := v.Type().Field(i); !f.IsExported() && f.Type.Kind() == reflect.Bool && v.Field(i).Bool() {
			return true
		}
	}
	return false
}

func yamlNode(n *node) *yaml.Node {
	y := &yaml.Node{Kind: yaml.ScalarNode, Value: n.text}
	switch n.kind {
	case mapping:
		y.Kind = yaml.MappingNode
		for _, p := range n.pairs {
			y.Content = append(y.Content, yamlNode(p.key), yamlNode(p.value))
		}
	case text:
		y.Tag = "!!str" // so that what looks like something else gets quotes
	}
	return y
}

func writeJSON(b *bytes.Buffer, n *node, newline string) {
	switch {
	case n.kind == mapping && len(n.pairs) > 0:
		for i, p := range n.pairs {
			b.WriteByte("{,"[min(i, 1)])
			b.WriteString(newline + "  ")
			writeJSON(b, p.key, "")
			b.WriteString(": ")
			writeJSON(b, p.value, newline+"  ")
		}
		b.WriteString(newline + "}")
	case n.kind == mapping:
		b.WriteString("{}")
	case n.kind == text:
		quoted, _ := json.Marshal(n.text)
		b.Write(quoted)
	default:
		b.WriteString(n.text)
	}
}
