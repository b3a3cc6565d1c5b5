// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"bytes"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// parserSize is the number of different entries after which a Parser forgets those that it has
// not read since.
const parserSize = 2048

// Parser reads managedFields entries and remembers the result, because pods with the same marks
// have equal entries. It is safe for concurrent use. A nil Parser remembers nothing.
type Parser struct {
	mu            sync.Mutex
	recent, older map[string][]ownedField
}

// NewParser returns a Parser that remembers nothing yet.
func NewParser() *Parser { return &Parser{recent: make(map[string][]ownedField)} }

// ownedField is a mark in an entry, or a field of one.
type ownedField struct {
	key   Key
	field string
}

// Owned returns the marks that Seamark owns on the pod, with the pod's values. It omits
// keys that the pod no longer has. A field of a condition that another manager has set
// since is empty. It returns an error if Seamark's managedFields entry cannot be parsed.
func (p *Parser) Owned(pod *corev1.Pod) (Marks, error) {
	owned := make(Marks)
	entry := Entry(pod.ManagedFields)
	if entry == nil {
		return owned, nil
	}
	fields, err := p.fields(entry)
	if err != nil {
		return nil, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	for _, f := range fields {
		owned.own(pod, f.key, f.field)
	}
	return owned, nil
}

// fields returns the marks in the entry.
func (p *Parser) fields(entry *metav1.ManagedFieldsEntry) ([]ownedField, error) {
	if entry.FieldsV1 == nil {
		return nil, nil
	}
	raw := entry.FieldsV1.GetRawBytes()
	if known, found := p.known(raw); found {
		return known, nil
	}
	parsed, err := parse(entry)
	if err != nil {
		return nil, err
	}
	var fields []ownedField
	parsed.Iterate(func(path fieldpath.Path) {
		if key, field, isMark := keyOf(path); isMark {
			fields = append(fields, ownedField{key: key, field: field})
		}
	})
	p.remember(raw, fields)
	return fields, nil
}

func (p *Parser) known(raw []byte) ([]ownedField, bool) {
	if p == nil {
		return nil, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if fields, found := p.recent[string(raw)]; found {
		return fields, true
	}
	fields, found := p.older[string(raw)]
	if found {
		p.add(string(raw), fields)
	}
	return fields, found
}

func (p *Parser) remember(raw []byte, fields []ownedField) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(string(raw), fields)
}

// add requires the lock.
func (p *Parser) add(raw string, fields []ownedField) {
	if len(p.recent) >= parserSize {
		p.recent, p.older = make(map[string][]ownedField), p.recent
	}
	p.recent[raw] = fields
}

// parse parses the entry's FieldsV1. fieldpath takes 0.9 times as long as a parser of only
// the levels above marks for Seamark's own entry (1.7 times the memory), and 1.4 times as
// long for that of a pod which OpenKruise created.
func parse(entry *metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	fields := fieldpath.NewSet()
	if err := fields.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
		return nil, fmt.Errorf("parse managedFields entry of %q: %w", entry.Manager, err)
	}
	return fields, nil
}
