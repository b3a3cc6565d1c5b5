// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"errors"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/cli/check"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestGrants(t *testing.T) {
	left := []rbacv1.RoleBinding{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "chat", Name: "seamark-workloads-pods"}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "games", Name: "seamark-workloads-pods"}},
	}
	for name, test := range map[string]struct {
		change func(f *check.Facts)
		want   string
	}{
		"none": {func(*check.Facts) {}, ""},
		"the manager removes them": {func(f *check.Facts) {
			f.Grants.Value, f.Granter.Value = left, &rbacv1.ClusterRoleBinding{}
		}, ""},
		"left": {
			func(f *check.Facts) { f.Grants.Value = left },
			"warning grants: 2 RoleBindings for seamark-workloads, which the manager created before, and may no longer remove: in chat, games\n" +
				"  remove them in two steps: docs/security.md#rolebindings-that-the-manager-created\n",
		},
		"not read": {func(f *check.Facts) { f.Grants.Err = errors.New("no connection") }, "unknown grants: no connection\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy(t)
			test.change(f)
			expect.Equal(t, "results that are not ok", test.want, lines(check.Run(f), false))
		})
	}
}
