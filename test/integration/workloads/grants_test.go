// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/workloads/grants"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestFirstSetOfANamespaceWaits runs the program without the manager: the set reports that it waits, and has its pods when an
// administrator has created the RoleBinding.
func TestFirstSetOfANamespaceWaits(t *testing.T) {
	e := servers.Parallel(t)
	w := &world{World: env.NewWorld(t, e)}
	t.Cleanup(w.clean)
	w.RunKubelets(nil)
	w.start()
	set := w.cloneSet("web", 2)
	w.says(set, "that it waits", func(message string) bool {
		return strings.Contains(message, fmt.Sprintf("waiting for a RoleBinding of ClusterRole %s", grants.Role))
	})
	byHand := env.WorkloadsBinding(w.Namespace)
	byHand.Name = "by-hand"
	w.Create(byHand)
	w.settled(set, 2, "image:1")
}
