// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// The users of the commands: of the roles view and edit in the namespace of the test.
const (
	viewer = "view"
	editor = "edit"
)

// seamark runs a command as a user until its exit code and its output are as wanted: what it says follows what the controllers
// do. It returns the output on both streams.
func (s *suite) seamark(as string, code int, want string, args ...string) string {
	s.Helper()
	got, out := s.run(as, args...)
	if got != code || !strings.Contains(out, want) {
		s.Fatalf("seamark %s, as %s: exit code %d, want %d and %q:\n%s", strings.Join(args, " "), as, got, code, want, out)
	}
	return out
}

// run runs a command as a user.
func (s *suite) run(as string, args ...string) (code int, out string) {
	s.Helper()
	out, err := s.Run(s.Context(), filepath.Join(s.Root, "bin", "seamark"),
		append(args, "--kubeconfig", s.Kubeconfig(), "--namespace", s.Namespace, "--as", as)...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), out
	}
	cluster.Must(s, err)
	return 0, out
}

// bind gives users the roles of their names in the namespace of the test.
func (s *suite) bind(roles ...string) {
	s.Helper()
	for _, role := range roles {
		s.Create(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: role}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		})
	}
}

// newDaemonSet returns a DaemonSet of apps.kruise.io with a pod per node that does nothing.
func newDaemonSet(name string) *v1alpha1.DaemonSet {
	return &v1alpha1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}, Template: template(name)},
	}
}

// TestCommandsDuringRollouts follows, pauses, blocks and undoes a rollout of each kind, with users of a namespace.
func TestCommandsDuringRollouts(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]ctrl.Object{
		"cloneset":    newCloneSet("arena", 2),
		"statefulset": newStatefulSet("arena", 2, func(set *v1beta1.StatefulSet) { set.Spec.PodManagementPolicy = "Parallel" }),
		"daemonset":   newDaemonSet("arena"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSuite(t)
			s.bind(viewer, editor)
			s.follow(name+"/arena", set)
		})
	}
}

// follow runs the commands on a set that does not exist yet.
func (s *suite) follow(name string, set ctrl.Object) {
	s.Helper()
	const whole = "--timeout=2m"
	s.seamark(viewer, 1, "not found", "rollout", "status", name)
	s.seamark(viewer, 1, "not found", "explain", name)
	s.Create(set)
	s.seamark(viewer, 0, "met", "wait", name, "--for=condition=Ready", whole)
	s.seamark(viewer, 0, "successfully rolled out", "rollout", "status", name, whole)
	s.seamark(viewer, 0, "Settled", "explain", name)
	pods := s.uids()

	s.seamark(viewer, 1, "edit", "rollout", "pause", name)
	s.seamark(editor, 0, "paused", "rollout", "pause", name)
	s.seamark(editor, 1, "already paused", "rollout", "pause", name)
	s.seamark(viewer, 1, "edit", "set", "image", name, "main="+s.newImage())
	s.seamark(editor, 1, "other", "set", "image", name, "other="+s.newImage())
	s.seamark(editor, 0, "image updated", "set", "image", name, "main="+s.newImage())
	s.seamark(viewer, 1, "paused", "wait", name, "--for=condition=Ready", "--timeout=3s")
	s.seamark(viewer, 1, "paused", "explain", name)
	s.seamark(viewer, 0, "paused", "rollout", "status", name, "--watch=false")
	s.seamark(editor, 0, "resumed", "rollout", "resume", name)
	s.seamark(viewer, 0, "successfully rolled out", "rollout", "status", name, whole)
	if updated := s.uids(); len(updated) != len(pods) {
		s.Errorf("pods %v after the rollout, and %v before", updated, pods)
	}

	s.seamark(editor, 0, "image updated", "set", "image", name, "main=missing.invalid/arena:1")
	s.seamark(viewer, 1, "image", "rollout", "status", name, "--timeout=15s")
	for _, stuck := range []struct {
		code int
		want string
		args []string
	}{
		{1, "image", []string{"explain", name}},
		{0, "arena", []string{"tree", name}},
		{0, "missing.invalid/arena:1", []string{"rollout", "history", name}},
		{0, "", []string{"get"}},
		{0, "", []string{"top"}},
		{0, "1", []string{"rollout", "undo", name, "--dry-run=client"}},
	} {
		as := viewer
		if stuck.args[0] == "rollout" && stuck.args[1] == "undo" {
			as = editor
		}
		s.seamark(as, stuck.code, stuck.want, stuck.args...)
	}
	s.seamark(viewer, 1, "edit", "rollout", "undo", name)
	s.seamark(editor, 0, "rolled back", "rollout", "undo", name)
	s.seamark(viewer, 0, "successfully rolled out", "rollout", "status", name, whole)

	before := s.uids()
	s.seamark(editor, 0, "restarted", "rollout", "restart", name)
	s.seamark(viewer, 0, "successfully rolled out", "rollout", "status", name, whole)
	for uid := range s.uids() {
		if before[uid] {
			s.Errorf("pod %s exists before and after the restart", uid)
		}
	}
}

// uids returns the UIDs of the pods of the namespace that are not terminating.
func (s *suite) uids() map[string]bool {
	s.Helper()
	var pods corev1.PodList
	cluster.Must(s, s.Client.List(s.Context(), &pods, ctrl.InNamespace(s.Namespace)))
	uids := map[string]bool{}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			uids[string(pods.Items[i].UID)] = true
		}
	}
	return uids
}
