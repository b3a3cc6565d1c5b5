// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/follow"
)

// prefix is the prefix of the test's marks.
const prefix = "upgrade.test/"

// turn is when the test changes a pod's answer.
type turn int

const (
	never turn = iota
	during
	after
)

// switches are the commands that change the result of a probe: to success and to failure.
var switches = map[string][2]string{
	"exec": {"touch /tmp/ok", "rm /tmp/ok"},
	"http": {"touch /tmp/www/ok", "rm /tmp/www/ok"},
	"tcp":  {"httpd -f -p 7070 </dev/null >/dev/null 2>&1 & echo $! >/tmp/tcp.pid", "kill $(cat /tmp/tcp.pid)"},
}

// upgradePod is a pod with three probes, one of which the test changes.
type upgradePod struct {
	name string
	// probe is the probe whose result the test changes, a key of switches.
	probe string
	turn  turn
	// good is the current result of the probe. The results of the others do not change.
	good bool
	// flips is how often the test has changed the result.
	flips int
}

// createUpgradePods creates three markers and pods that they select: more than one ProbeReport
// has, with all kinds of handlers, a static pod, and a pod with a container that has ended.
func (u *upgrade) createUpgradePods() {
	u.Helper()
	u.pods = []*upgradePod{
		{name: "exec-during", probe: "exec", turn: during, good: true},
		{name: "http-during", probe: "http", turn: during, good: true},
		{name: "tcp-during", probe: "tcp", turn: during, good: true},
		{name: "failed-during", probe: "exec", turn: during},
		{name: "exec-after", probe: "exec", turn: after, good: true},
		{name: "http-after", probe: "http", turn: after},
		{name: "tcp-after", probe: "tcp", turn: after, good: true},
		{name: "good", probe: "exec", good: true},
		{name: "failed", probe: "exec"},
		{name: "ended", probe: "exec", good: true},
	}
	u.createUpgradeMarkers()
	for _, p := range u.pods {
		cluster.Must(u, u.Client.Create(u.Context(), u.upgradePod(p)))
	}
	node := u.AnyNode()
	static := &upgradePod{name: "static", probe: "exec", turn: during, good: true}
	u.RunStatic(node, u.upgradePod(static))
	static.name += "-" + node
	u.pods = append(u.pods, static)
}

func (u *upgrade) upgradePod(p *upgradePod) *corev1.Pod {
	script := []string{"mkdir -p /tmp/www", "httpd -p 8080 -h /tmp/www"}
	for _, probe := range []string{"exec", "http", "tcp"} {
		if p.good || p.probe != probe {
			script = append(script, switches[probe][0])
		}
	}
	script = append(script, `trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done`)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace, Name: p.name, Labels: map[string]string{"app": "upgrade"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers: []corev1.Container{{
				Name: "main", Image: cluster.BusyboxImage, Command: []string{"sh", "-c", strings.Join(script, "\n")},
			}},
		},
	}
	if p.name == "ended" {
		pod.Labels["ended"] = "true"
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: "side", Image: cluster.BusyboxImage, Command: []string{"sh", "-c", "exit 3"},
		})
	}
	return pod
}

// createUpgradeMarkers creates the markers exec, network and ended.
func (u *upgrade) createUpgradeMarkers() {
	u.Helper()
	probe := func(name string, handler corev1.ProbeHandler) v1alpha1.PodContainerProbe {
		policy := func(state v1alpha1.ProbeState) v1alpha1.ProbeMarkerPolicy {
			return v1alpha1.ProbeMarkerPolicy{State: state, Labels: map[string]string{prefix + name: string(state)}}
		}
		return v1alpha1.PodContainerProbe{
			Name: name, ContainerName: "main", PodConditionType: prefix + name,
			// A timeout on a busy machine would be a correct change of a mark.
			Probe:        v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{ProbeHandler: handler, PeriodSeconds: 1, TimeoutSeconds: 30, FailureThreshold: 1}},
			MarkerPolicy: []v1alpha1.ProbeMarkerPolicy{policy(v1alpha1.ProbeSucceeded), policy(v1alpha1.ProbeFailed)},
		}
	}
	shell := func(line string) corev1.ProbeHandler {
		return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", line}}}
	}
	exec, delayed, ended := probe("exec", shell("test -f /tmp/ok")), probe("delayed", shell("true")), probe("ended", shell("true"))
	exec.MarkerPolicy[0].Annotations = map[string]string{prefix + "exec-since": "unknown"}
	delayed.Probe.InitialDelaySeconds = 86400
	ended.ContainerName = "side"
	http := probe("http", corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ok", Port: intstr.FromInt32(8080)}})
	tcp := probe("tcp", corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(7070)}})
	for _, marker := range []struct {
		name   string
		labels map[string]string
		probes []v1alpha1.PodContainerProbe
	}{
		{"exec", map[string]string{"app": "upgrade"}, []v1alpha1.PodContainerProbe{exec, delayed}},
		{"network", map[string]string{"app": "upgrade"}, []v1alpha1.PodContainerProbe{http, tcp}},
		{"ended", map[string]string{"ended": "true"}, []v1alpha1.PodContainerProbe{ended}},
	} {
		cluster.Must(u, u.Client.Create(u.Context(), &v1alpha1.PodProbeMarker{
			ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace, Name: marker.name},
			Spec:       v1alpha1.PodProbeMarkerSpec{Selector: &metav1.LabelSelector{MatchLabels: marker.labels}, Probes: marker.probes},
		}))
	}
}

// flip changes the answer of the pod's container.
func (u *upgrade) flip(p *upgradePod) {
	u.Helper()
	command := switches[p.probe][0]
	if p.good {
		command = switches[p.probe][1]
	}
	u.Kubectl("exec", p.name, "--container=main", "--", "sh", "-c", command)
	p.good, p.flips = !p.good, p.flips+1
}

// history records the successive marks of each pod, including the messages and the times of
// transitions.
type history struct {
	mu    sync.Mutex
	marks map[string][][]string
}

// watchHistory records until the test ends.
func (s *suite) watchHistory() *history {
	s.Helper()
	h := &history{marks: map[string][][]string{}}
	ctx, cancel := context.WithCancel(s.Context())
	finish, err := follow.Objects(ctx, s.Client, &corev1.PodList{}, func(event watch.Event) {
		if pod, ok := event.Object.(*corev1.Pod); ok {
			h.note(pod)
		}
	}, client.InNamespace(s.Namespace))
	if err != nil {
		cancel()
	}
	cluster.Must(s, err)
	s.Cleanup(func() { cancel(); expect.NoError(s, finish()) })
	return h
}

func (h *history) note(pod *corev1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, seen := upgradeMarks(pod), h.marks[pod.Name]
	if len(seen) == 0 || !slices.Equal(seen[len(seen)-1], now) {
		h.marks[pod.Name] = append(seen, now)
	}
}

// upgradeMarks returns the test's marks of the pod, sorted.
func upgradeMarks(pod *corev1.Pod) []string {
	var marks []string
	for kind, all := range map[string]map[string]string{"label": pod.Labels, "annotation": pod.Annotations} {
		for key, value := range all {
			if strings.HasPrefix(key, prefix) {
				marks = append(marks, fmt.Sprintf("%s %s=%s", kind, key, value))
			}
		}
	}
	for _, c := range pod.Status.Conditions {
		if strings.HasPrefix(string(c.Type), prefix) {
			marks = append(marks, fmt.Sprintf("condition %s=%s since %s: %s: %s",
				c.Type, c.Status, c.LastTransitionTime.Format(time.RFC3339), c.Reason, c.Message))
		}
	}
	slices.Sort(marks)
	return marks
}

// reached waits until all pods have the marks of their answers.
func (u *upgrade) reached(what string) {
	u.Helper()
	u.Eventually(what+": all pods are marked", func(context.Context) error {
		u.mu.Lock()
		defer u.mu.Unlock()
		for _, p := range u.pods {
			seen := u.marks[p.name]
			if len(seen) == 0 {
				return fmt.Errorf("pod %s is not seen", p.name)
			}
			if err := p.marked(seen[len(seen)-1]); err != nil {
				return err
			}
		}
		return nil
	})
}

// forget removes all marks from the history except the current ones.
func (h *history) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, seen := range h.marks {
		h.marks[name] = seen[len(seen)-1:]
	}
}

// settled waits until all pods have the marks of their answers. No pod may have changed its marks
// more often than the test has changed its answer, and in no other mark than those of the probe.
func (u *upgrade) settled(what string) {
	u.Helper()
	u.reached(what)
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, p := range u.pods {
		seen := u.marks[p.name]
		if len(seen) != 1+p.flips {
			u.Errorf("%s: the marks of pod %s changed %d times, want %d:\n%s", what, p.name, len(seen)-1, p.flips, describe(seen))
		}
		for i := 1; i < len(seen); i++ {
			if other := otherChanges(seen[i-1], seen[i], prefix+p.probe); len(other) > 0 {
				u.Errorf("%s: other marks of pod %s changed as well: %q", what, p.name, other)
			}
		}
		u.marks[p.name], p.flips = seen[len(seen)-1:], 0
	}
}

// marked returns an error if marks are not those of the pod's answers.
func (p *upgradePod) marked(marks []string) error {
	answers := map[string]bool{"exec": true, "http": true, "tcp": true}
	if p.name == "ended" {
		answers["ended"] = false
	}
	answers[p.probe] = p.good
	for probe, good := range answers {
		state, status := v1alpha1.ProbeFailed, corev1.ConditionFalse
		if good {
			state, status = v1alpha1.ProbeSucceeded, corev1.ConditionTrue
		}
		label, condition := fmt.Sprintf("label %s%s=%s", prefix, probe, state), fmt.Sprintf("condition %s%s=%s ", prefix, probe, status)
		if !slices.Contains(marks, label) || !slices.ContainsFunc(marks, func(mark string) bool { return strings.HasPrefix(mark, condition) }) {
			return fmt.Errorf("pod %s has the marks %q, want %q and %q", p.name, marks, label, condition)
		}
	}
	if slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains(mark, prefix+"delayed") }) {
		return fmt.Errorf("pod %s has a mark of a probe that has never run: %q", p.name, marks)
	}
	return nil
}

// otherChanges returns the marks that only one of the versions has and that do not contain the key.
func otherChanges(before, after []string, key string) []string {
	var other []string
	for _, pair := range [][2][]string{{before, after}, {after, before}} {
		for _, mark := range pair[0] {
			if !slices.Contains(pair[1], mark) && !strings.Contains(mark, key) {
				other = append(other, mark)
			}
		}
	}
	return other
}

// describe returns one line for each version of the marks.
func describe(versions [][]string) string {
	lines := make([]string, len(versions))
	for i, marks := range versions {
		lines[i] = fmt.Sprintf("  %q", marks)
	}
	return strings.Join(lines, "\n")
}
