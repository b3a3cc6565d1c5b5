// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"testing"
	"time"

	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

func TestWritesOfTheBenchmarkDoNotCount(t *testing.T) {
	c := cost{took: time.Second, writes: writesOf(env.Requests{
		{Verb: "POST", Resource: "pods", Code: "201"}:                                30,
		{Verb: "DELETE", Resource: "pods", Code: "409"}:                              2,
		{Verb: "PATCH", Resource: "pods", Subresource: "status", Code: "200"}:        33,
		{Verb: "POST", Resource: "clonesets", Group: "apps.kruise.io", Code: "201"}:  3,
		{Verb: "PUT", Resource: "leases", Group: "coordination.k8s.io", Code: "200"}: 5,
		{Verb: "GET", Resource: "pods", Code: "200"}:                                 7,
	})}
	c.subtract("pods/status", 30)
	c.subtract("clonesets", 3)
	expect.Equal(t, "writes", map[string]int{"pods": 32, "pods/status": 3}, c.writes)
}
