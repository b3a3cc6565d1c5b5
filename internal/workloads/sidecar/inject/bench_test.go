// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inject_test

import (
	"math/rand/v2"
	"testing"

	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
)

// BenchmarkInject injects a set into pods that have two others.
func BenchmarkInject(b *testing.B) {
	r := random{rand.New(rand.NewPCG(7, 25))}
	sets := []*inject.Revision{r.set(0), r.set(1), r.set(2)}
	known := func(name, _ string) *inject.Revision { return sets[name[1]-'0'] }
	p := r.pod()
	for _, s := range sets[1:] {
		next, _, err := inject.Inject(p, s, known, at)
		if err != nil {
			b.Fatal(err)
		}
		p = defaulted(next)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := inject.Inject(p, sets[0], known, at); err != nil {
			b.Fatal(err)
		}
	}
}
