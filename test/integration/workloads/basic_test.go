// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"testing"
)

func TestCloneSet(t *testing.T) {
	w := newWorld(t)
	set := w.cloneSet("web", 5)
	w.settled(set, 5, "image:1")
	w.patch(set, `{"spec":{"replicas":8}}`)
	w.settled(set, 8, "image:1")
	w.patch(set, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"image:2"}]}}}}`)
	w.settled(set, 8, "image:2")
	w.patch(set, `{"spec":{"replicas":2}}`)
	w.settled(set, 2, "image:2")
}

func TestStatefulSet(t *testing.T) {
	w := newWorld(t)
	set := w.statefulSet("db", 3)
	w.settled(set, 3, "image:1")
	w.patch(set, `{"spec":{"replicas":5}}`)
	w.settled(set, 5, "image:1")
	w.patch(set, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"image:2"}]}}}}`)
	w.settled(set, 5, "image:2")
	w.patch(set, `{"spec":{"replicas":1}}`)
	w.settled(set, 1, "image:2")
}
