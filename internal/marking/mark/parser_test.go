// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestParserForgetsEntriesThatAreNotRead(t *testing.T) {
	entry := func(label string) *metav1.ManagedFieldsEntry {
		return &metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:` + label + `":{}}}}`)}
	}
	p := NewParser()
	for i := range 3 * parserSize {
		label := fmt.Sprintf("label-%d", i)
		for _, name := range []string{"first", label} {
			fields, err := p.fields(entry(name))
			if err != nil || len(fields) != 1 || fields[0].key != Label(name) {
				t.Fatalf("fields of %s: %v, %v", name, fields, err)
			}
		}
	}
	if n := len(p.recent) + len(p.older); n > 2*parserSize {
		t.Errorf("%d entries are remembered, want at most %d", n, 2*parserSize)
	}
	if _, known := p.known([]byte(entry("first").FieldsV1.GetRawString())); !known {
		t.Error("an entry that was read recently is forgotten")
	}
	if _, known := p.known([]byte(entry("label-0").FieldsV1.GetRawString())); known {
		t.Error("an entry that was not read is remembered")
	}
}
