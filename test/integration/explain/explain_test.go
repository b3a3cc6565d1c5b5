// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// broken is a setup and the conclusion about it.
type broken struct {
	make func(world)
	args []string
	// want is a regular expression for the whole conclusion. NAMESPACE and NODE are replaced.
	want string
}

// answered waits until the conclusion is the wanted one: the manager works meanwhile.
func (w world) answered(want string, args ...string) {
	w.Helper()
	want = strings.NewReplacer("NAMESPACE", w.Namespace, "NODE", w.node).Replace(want)
	matches := regexp.MustCompile("^" + want + "$").MatchString
	poll := await.Poll{Interval: 20 * time.Millisecond, Timeout: await.Timeout}
	poll.Success(w, want, func(context.Context) error {
		x, code, err := w.explain(args...)
		if err != nil {
			return err
		}
		expected := exit.Failed
		if strings.HasPrefix(x.Conclusion, "Marked:") {
			expected = exit.OK
		}
		if matches(x.Conclusion) && code == expected && (x.Next != "" || x.Marked) {
			return nil
		}
		return fmt.Errorf("exit code %d, %q, next %q", code, x.Conclusion, x.Next)
	})
}

func TestBrokenSetups(t *testing.T) {
	startManager(t)
	for name, test := range setups() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			test.make(w)
			w.answered(test.want, test.args...)
		})
	}
}

// setups returns setups whose objects the API server and the manager write. The setups of
// internal/cli/explanation are those of each conclusion.
func setups() map[string]broken {
	const marked = `Marked: worker#busy is Succeeded \(condition example.com/busy=True, label busy=true\)`
	return map[string]broken{
		"agent behind": {
			make: func(w world) {
				w.agent(corev1.ConditionTrue)
				w.planned(0)
				w.runPod(w.started(w.pod().Build()))
				w.marker(busy())
				w.observe(w.planned(1), 1)
			},
			want: "(Problem|Waiting): Plan of node NODE: the node's agent runs generation . of the plan, which has generation . now",
		},
		"probe cannot be run": {
			make: func(w world) {
				w.agent(corev1.ConditionTrue)
				w.runPod(w.started(w.pod().Build()))
				w.marker(busy())
				w.report(w.planned(1), "", "", v1alpha1.ContainerProbeError{Name: "worker#busy", Reason: v1alpha1.ProbeCannotRun, Message: "no such file"})
			},
			want: `Problem: Report of worker#busy: cannot be run: no such file`,
		},
		"mark refused": {
			make: func(w world) {
				w.agent(corev1.ConditionTrue)
				w.runPod(w.started(w.pod().Annotation("example.com/large", strings.Repeat("x", 262_000)).Build()))
				w.marker(builders.Probe("busy").Annotation(v1alpha1.ProbeSucceeded, "example.com/more", strings.Repeat("x", 1000)))
				w.report(w.planned(1), v1alpha1.ProbeSucceeded, "")
			},
			want: `Problem: Marks of worker#busy: the pod does not have the marks of the state: annotation example.com/more: ` +
				`probe "busy": the API server refuses its marks .*`,
		},
		"only namespaced permissions": {
			make: func(w world) {
				w.running(v1alpha1.ProbeSucceeded, "", busy())
				w.grant("developer")
			},
			args: []string{"--as=developer"},
			want: marked + `. Not checked: Node NODE, Manager, Plan of node NODE, Agent of node NODE, Report`,
		},
		"permissions to view states": {
			make: func(w world) {
				w.running(v1alpha1.ProbeSucceeded, "", busy())
				w.grant("viewer")
				shared.GrantStates(w, "viewer")
			},
			args: []string{"--as=viewer"},
			want: marked,
		},
	}
}

// grant lets a user view pods, events and markers of the namespace.
func (w world) grant(user string) {
	w.Helper()
	view := []string{"get", "list", "watch"}
	shared.Grant(w, w.Namespace, env.UserSubject(user),
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "events"}, Verbs: view},
		rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"podprobemarkers"}, Verbs: view})
}

// Without a manager, its lease is old.
func TestManagerDown(t *testing.T) {
	stop := startManager(t)
	w := newWorld(t)
	w.running(v1alpha1.ProbeSucceeded, "", busy())
	w.answered(`Marked: .*`)
	stop()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: env.SystemNamespace, Name: "seamark-manager"}}
	renewed := time.Now().Add(-10 * time.Minute).UTC().Format("2006-01-02T15:04:05.000000Z")
	expect.NoError(t, shared.Client.Patch(t.Context(), lease, env.MergePatch(fmt.Sprintf(
		`{"spec":{"holderIdentity":"manager-1","renewTime":%q}}`, renewed))))
	w.answered("Problem: Manager: no manager has led for 10m: plans and marks do not change")
}

func TestMissingCRDs(t *testing.T) {
	t.Parallel()
	e := env.Start(t, env.NoCRDs())
	w := world{World: env.NewWorld(t, e), node: "node-1", kubeconfig: env.Kubeconfig(t, e.Config)}
	if _, err := env.CreatePod(t.Context(), e.Client, w.pod().Build()); err != nil {
		t.Fatal(err)
	}
	w.answered("Problem: Markers: the markers of namespace NAMESPACE cannot be read, because Seamark is not installed in the cluster")
}
