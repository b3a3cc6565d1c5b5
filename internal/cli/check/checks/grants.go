// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import "github.com/seamark-dev/seamark/internal/program/text"

// grants checks that no RoleBinding stays that the manager created before an administrator decided where seamark-workloads
// may write: the manager then has no right to remove them.
func (f *Facts) grants() []Result {
	const name = "grants"
	if err := firstError(f.Granter.Err, f.Grants.Err); err != nil {
		return unreadable(name, err)
	}
	if f.Granter.Value != nil || len(f.Grants.Value) == 0 {
		return nil
	}
	var namespaces []string
	for i := range f.Grants.Value {
		namespaces = append(namespaces, f.Grants.Value[i].Namespace)
	}
	return warning(name, "remove them in two steps: docs/security.md#rolebindings-that-the-manager-created",
		"%s for seamark-workloads, which the manager created before, and may no longer remove: in %s",
		text.Count(len(namespaces), "RoleBinding"), text.List(namespaces, maxNames))
}
