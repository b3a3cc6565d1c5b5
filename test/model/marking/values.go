// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marking

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent/cri"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/test/chaos/oracle"
)

// This file is the model of values from messages and of startup probes: see docs/concepts.md and docs/judging.md.

// The arguments of the command of a probe say what it does.
const (
	// printing means that the probe prints values, waiting that it waits for the startup probe.
	printing, waiting = "printing", "waiting"
	// startup is the command of all startup probes.
	startup = "startup"
)

// messages are what probes with values print.
func messages() []string {
	long := strings.Repeat("x", 300)
	return []string{
		"a", "b", `{"v":"a"}`, `{"v":"b"} and a warning`, `{"v":7}`, "not a label!", long, `{"v":"` + long + `"}`, "a\nb", `{"v":null}`, `{"v":`, "-a-", "ä…",
		strings.Repeat("y", 2000), "", `{"v":"a","rest":"` + strings.Repeat("z", 2000) + `"}`, `{"w":"a"}`, `{"v":""}`, " a ", `{"v":true}`,
	}
}

// makeValues lets some probes set marks to values that they print. It uses no random numbers.
func (w *world) makeValues(p *v1alpha1.PodContainerProbe) {
	policy := &p.MarkerPolicy[0]
	if w.created%5 > 1 || policy.Exclusive != nil {
		return
	}
	from := v1alpha1.ValueSource{Key: fmt.Sprintf("%sk%d", markPrefix, w.created/5%keys)}
	if w.created%2 == 0 {
		from.JSONPath = ".v"
	}
	if w.created%5 == 0 {
		from.AllowedValues = []string{"a", "7", "not a label!"}
	}
	if _, fixed := policy.Labels[from.Key]; !fixed {
		policy.LabelsFrom = []v1alpha1.ValueSource{from}
	}
	if _, fixed := policy.Annotations[from.Key]; !fixed {
		policy.AnnotationsFrom = []v1alpha1.ValueSource{from}
	}
	p.Probe.Exec.Command = append(p.Probe.Exec.Command, printing)
}

// changeMessage changes what a probe prints in a pod, or lets it print something else in each run as long as faults happen.
func (w *world) changeMessage() {
	pod, marker := w.anyPod(), w.anyMarker()
	if pod == nil || marker == nil {
		return
	}
	probe := &marker.Spec.Probes[w.rand.IntN(len(marker.Spec.Probes))]
	w.mu.Lock()
	defer w.mu.Unlock()
	key := string(pod.UID) + " " + token(probe)
	w.varying[key] = w.rand.IntN(4) == 0
	w.messages[key] = w.rand.IntN(len(messages()))
}

// message returns what the probe prints now, and remembers it. The caller holds mu, or no agent runs.
func (w *world) message(pod types.UID, token string) string {
	key, all := string(pod)+" "+token, messages()
	at, set := w.messages[key]
	if !set {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(key))
		at = int(hash.Sum32() % uint32(len(all))) //nolint:gosec // small
		w.messages[key] = at
	}
	if w.history.messages[key] == nil {
		w.history.messages[key] = map[string]bool{}
	}
	w.history.messages[key][all[at]] = true
	return all[at]
}

// probe runs the command of a probe in a container. The caller holds mu.
func (w *world) probe(c cri.Instance, command []string) probing.Outcome {
	key := string(c.PodUID) + " " + command[0]
	if command[0] == startup {
		return probing.Outcome{Success: !w.unstarted[c.ID], Message: "started"}
	}
	if w.unstarted[c.ID] && slices.Contains(command, waiting) && !w.history.results[c.ID+" "+command[0]] {
		w.fail(fmt.Errorf("probe %s of pod %s runs before container %s has started", command[0], c.Pod.Name, c.ID))
	}
	w.history.results[c.ID+" "+command[0]] = true
	outcome := probing.Outcome{Success: w.outcome(c.PodUID, command[0]), Message: command[0]}
	if slices.Contains(command, printing) {
		if w.varying[key] && w.chaos {
			w.messages[key] = (w.messages[key] + 1) % len(messages())
		}
		outcome.Message = probing.Message([]byte(w.message(c.PodUID, command[0])))
	}
	return outcome
}

// valueIn returns the value in the message, and whether there is a valid one.
func valueIn(message string, from *v1alpha1.ValueSource, label bool) (string, bool) {
	message = strings.TrimSpace(message)
	value, _, _ := strings.Cut(message, "\n")
	found := value != ""
	if from.JSONPath != "" {
		value, found = jsonValue(message)
	}
	if len(from.AllowedValues) > 0 && !slices.Contains(from.AllowedValues, value) {
		return "", false
	}
	if label {
		return value, found && (value == "" || labelValue.MatchString(value))
	}
	return value, found && len(value) <= 256 && !strings.HasSuffix(value, "…")
}

var labelValue = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

// jsonValue returns the value at .v of the JSON with which the message begins.
func jsonValue(message string) (string, bool) {
	var found struct{ V any }
	if !strings.HasPrefix(message, "{") || json.NewDecoder(strings.NewReader(message)).Decode(&found) != nil {
		return "", false
	}
	switch v := found.V.(type) {
	case string:
		return v, true
	case float64:
		return strconv.Itoa(int(v)), true
	case bool:
		return strconv.FormatBool(v), true
	default:
		return "", false
	}
}

// valuesIn adds the marks of the policy whose values are in the message, and returns the keys without a value.
func valuesIn(policy *v1alpha1.ProbeMarkerPolicy, message string, found marks) (refused []field) {
	add := func(kind string, sources []v1alpha1.ValueSource) {
		for i := range sources {
			key := field{Kind: kind, Name: sources[i].Key}
			if value, valid := valueIn(message, &sources[i], kind == oracle.Label); valid {
				found[key] = value
			} else {
				refused = append(refused, key)
			}
		}
	}
	add(oracle.Label, policy.LabelsFrom)
	add(oracle.Annotation, policy.AnnotationsFrom)
	return refused
}

// makeWait lets some probes wait for the startup probe of their container. An edit changes neither which nor the container: if it did,
// a probe with a state would wait until its agent restarts.
func (w *world) makeWait(p *v1alpha1.PodContainerProbe) {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(token(p)))
	if hash.Sum32()%3 == 0 {
		p.StartupPolicy, p.ContainerName = v1alpha1.StartupWait, "main"
		p.Probe.Exec.Command = append(p.Probe.Exec.Command, waiting)
	}
}

// addStartup adds startup probes to some containers. The agent would assume after 30,000 runs that the container has started.
func (w *world) addStartup(pod *corev1.Pod) {
	for i := range pod.Spec.Containers {
		if (w.server.UIDs+i)%3 == 0 {
			pod.Spec.Containers[i].StartupProbe = &corev1.Probe{
				ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{startup}}}, PeriodSeconds: 5, FailureThreshold: 30000,
			}
		}
	}
}

// noteStartup decides whether the startup probe of a container that starts succeeds at once or later.
func (w *world) noteStartup(pod *corev1.Pod, name, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == name && c.StartupProbe != nil {
			w.unstarted[id] = w.created%2 == 0
		}
	}
}

// startUp lets the startup probes of the containers of a pod succeed.
func (w *world) startUp() {
	pod := w.anyPod()
	if pod == nil {
		return
	}
	for _, c := range w.nodes[pod.Spec.NodeName].containersOf(pod.UID) {
		w.mu.Lock()
		delete(w.unstarted, c.ID)
		w.mu.Unlock()
	}
}

// waits reports whether a probe does not run because its container has not started.
func (w *world) waits(pod *corev1.Pod, probe *v1alpha1.PodContainerProbe) bool {
	return probe.StartupPolicy == v1alpha1.StartupWait && slices.ContainsFunc(w.nodes[pod.Spec.NodeName].containersOf(pod.UID), func(c cri.Instance) bool {
		return c.Name == probe.ContainerName && c.Running && w.unstarted[c.ID]
	})
}

// everPrinted reports whether the probe has ever printed the value of the mark. The caller holds mu.
func (w *world) everPrinted(pod types.UID, probe *v1alpha1.PodContainerProbe, state v1alpha1.ProbeState, key field, value string) bool {
	for i := range probe.MarkerPolicy {
		if probe.MarkerPolicy[i].State != state {
			continue
		}
		// Before an edit, it may have printed its token.
		for _, message := range append(slices.Collect(maps.Keys(w.history.messages[string(pod)+" "+token(probe)])), token(probe)) {
			found := marks{}
			valuesIn(&probe.MarkerPolicy[i], message, found)
			if got, has := found[key]; has && got == value {
				return true
			}
		}
	}
	return false
}

// refused returns the keys of a probe for which its message has no valid value.
func (w *world) refused(pod *corev1.Pod, probe *v1alpha1.PodContainerProbe) (keys []field) {
	report, _ := w.reported(pod, probe)
	w.eachProbe(pod, func(each *v1alpha1.PodContainerProbe, before map[field]bool) {
		if token(each) != token(probe) || report.State == "" || w.isStale(pod, probe) {
			return
		}
		for i := range probe.MarkerPolicy {
			if policy := &probe.MarkerPolicy[i]; policy.State == contested(pod, probe, report.State, before) {
				keys = slices.DeleteFunc(valuesIn(policy, report.Message, marks{}), func(key field) bool { return before[key] })
			}
		}
	})
	return keys
}

// checkMessages checks that what probes print is reported: allowed values at once, and everything that is short later.
func (w *world) checkMessages() error {
	var failed error
	for _, pod := range w.games() {
		if !oracle.Probed(pod) || !w.nodes[pod.Spec.NodeName].running {
			continue
		}
		w.eachProbe(pod, func(probe *v1alpha1.PodContainerProbe, _ map[field]bool) {
			report, _ := w.reported(pod, probe)
			if report.State != v1alpha1.ProbeSucceeded || w.waits(pod, probe) || !slices.Contains(probe.Probe.Exec.Command, printing) {
				return
			}
			now := w.message(pod.UID, token(probe))
			for _, from := range slices.Concat(probe.MarkerPolicy[0].LabelsFrom, probe.MarkerPolicy[0].AnnotationsFrom) {
				was, had := valueIn(report.Message, &from, false)
				is, has := valueIn(now, &from, false)
				if len(from.AllowedValues) > 0 && len(now) < 1000 && (had != has || was != is) {
					failed = fmt.Errorf("pod %s: probe %s prints %q, but %q is reported", pod.Name, token(probe), now, report.Message)
				}
			}
		})
	}
	return failed
}
