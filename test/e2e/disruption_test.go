// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/process"
)

// processes returns the IDs of the processes whose program and arguments match. The tests run on
// the machine that runs the cluster.
func processes(t testing.TB, matches func(args []string) bool) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	cluster.Must(t, err)
	var found []int
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil {
			continue // It has exited.
		}
		args := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && matches(args) {
			found = append(found, pid)
		}
	}
	return found
}

// program matches the processes of a program of this cluster, because other clusters and API
// servers can run on the same machine: a program in a container is in its root folder, and the
// other programs have an argument with the folder of the cluster.
func (s *suite) program(name string) func([]string) bool {
	return func(args []string) bool {
		return args[0] == "/"+name || filepath.Base(args[0]) == name &&
			slices.ContainsFunc(args[1:], func(arg string) bool { return strings.Contains(arg, s.Dir+"/") })
	}
}

// kill waits for a process of the program and kills all of them, which simulates a crash.
func (s *suite) kill(name string) {
	s.Helper()
	s.Eventually("a process of "+name, func(context.Context) error {
		found := processes(s, s.program(name))
		if len(found) == 0 {
			return errors.New("none")
		}
		for _, pid := range found {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				return fmt.Errorf("kill %d: %w", pid, err)
			}
		}
		return nil
	})
}

// systemReady waits until the pods of the component exist and are ready.
func (s *suite) systemReady(component string) {
	s.Helper()
	s.Eventually(component+" is ready", func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := s.Client.List(
			ctx, pods, ctrl.InNamespace(cluster.SystemNamespace), ctrl.MatchingLabels{"app.kubernetes.io/component": component},
		); err != nil {
			return err
		}
		if len(pods.Items) == 0 {
			return fmt.Errorf("no pod of %s", component)
		}
		for i := range pods.Items {
			if err := hasCondition("Ready", corev1.ConditionTrue)(&pods.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// fleet is a group of marked pods whose states a test flips.
type fleet struct {
	*suite
	pods []string
	good map[string]bool
}

func newFleet(s *suite, many int) *fleet {
	labels := map[string]string{"app": "fleet"}
	f := &fleet{suite: s, good: map[string]bool{}}
	for i := range many {
		name := fmt.Sprintf("fleet-%d", i)
		f.pods, f.good[name] = append(f.pods, name), true
		s.Create(newPod(name, "touch /tmp/ok; "+idle, labels))
	}
	s.Create(newMarker("fleet", labels, newProbe("ok", shell("test -f /tmp/ok"), condition("test.dev/ok"),
		labelled(v1alpha1.ProbeSucceeded, map[string]string{"ok": "true"}),
		labelled(v1alpha1.ProbeFailed, map[string]string{"ok": "false"}))))
	s.running(f.pods...)
	f.settled()
	return f
}

// flip changes the state of every other pod.
func (f *fleet) flip() {
	f.Helper()
	for i := 0; i < len(f.pods); i += 2 {
		name := f.pods[i]
		f.good[name] = !f.good[name]
		f.exec(name, map[bool]string{true: "touch /tmp/ok", false: "rm /tmp/ok"}[f.good[name]])
	}
}

// settled waits until every pod has the marks of its container's state.
func (f *fleet) settled() {
	f.Helper()
	for _, name := range f.pods {
		status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[f.good[name]]
		f.podIs(name, hasCondition("test.dev/ok", status), hasLabel("ok", strconv.FormatBool(f.good[name])))
	}
}

// writes returns when Seamark last changed each pod. The kubelet may write the status of a pod at any time.
func (f *fleet) writes() map[string]metav1.Time {
	f.Helper()
	at := map[string]metav1.Time{}
	for _, name := range f.pods {
		entry := mark.Entry(f.Pod(name).ManagedFields)
		if entry == nil {
			f.Fatalf("pod %s has no marks", name)
		}
		at[name] = *entry.Time
	}
	return at
}

// TestKilledDaemons kills the installed programs while no state changes. test/chaos kills programs while states change.
func TestKilledDaemons(t *testing.T) {
	s := newSuite(t)
	f := newFleet(s, 6)
	before := f.writes()
	s.kill("seamark-manager")
	s.kill("seamark-agent")
	s.Eventually("both run again", func(context.Context) error {
		for _, daemon := range []string{"seamark-manager", "seamark-agent"} {
			if len(processes(t, s.program(daemon))) == 0 {
				return fmt.Errorf("no process of %s", daemon)
			}
		}
		return nil
	})
	s.systemReady("manager")
	s.systemReady("agent")
	expect.Equal(t, "pods were written although no state changed", before, f.writes())
	f.flip()
	f.settled()
}

// clusterUp restarts the stopped processes of the cluster.
func (s *suite) clusterUp() {
	s.Helper()
	program, err := process.Built("cluster", "test-e2e")
	cluster.Must(s, err)
	if out, err := s.Run(s.Context(), "env", "-C", "hack/cluster", program, "up", "--dir", s.Dir); err != nil {
		s.Fatalf("restart the cluster: %v\n%s", err, out)
	}
}
