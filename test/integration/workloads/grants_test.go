// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/workloads/grants"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestFirstSetOfANamespaceWaits runs the program without the manager: the set reports that it waits, and has its pods when an
// administrator has created the RoleBinding.
func TestFirstSetOfANamespaceWaits(t *testing.T) {
	e := servers.Parallel(t)
	w := &world{TB: t, env: e, client: e.Client, namespace: e.Namespace(t)}
	t.Cleanup(w.clean)
	w.runNodes()
	w.start()
	set := w.cloneSet("web", 2)
	await.Until(t, "the set reports that it waits", func(ctx context.Context) (string, error) {
		message, err := w.failing(ctx, set)
		if want := fmt.Sprintf("waiting for a RoleBinding of ClusterRole %s", grants.Role); err != nil || strings.Contains(message, want) {
			return "", err
		}
		return fmt.Sprintf("message %q", message), nil
	})
	byHand := env.WorkloadsBinding(w.namespace)
	byHand.Name = "by-hand"
	w.must(w.client.Create(t.Context(), byHand))
	w.settled(set, 2, "image:1")
}
