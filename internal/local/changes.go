// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/internal/local/lifecycle"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// maxMessageBytes is the maximum length of a termination message, as in a cluster.
const maxMessageBytes = 4096

// add adds a change of a pod to those of the turn, and returns it with its time and the name of
// the pod. The loop passes the changes to Observe when it no longer holds the lock.
func (l *loop) add(now time.Time, p *pod, change Change) Change {
	change.Time, change.Namespace, change.Pod = now, p.object.Namespace, p.object.Name
	l.changes = append(l.changes, change)
	return change
}

// addPhase adds the pod's current phase.
func (l *loop) addPhase(now time.Time, p *pod) {
	l.add(now, p, Change{Kind: KindPod, Phase: p.object.Status.Phase})
}

// addEvent adds an event about a container.
func (l *loop) addEvent(now time.Time, p *pod, container, eventType, reason, message string) {
	l.add(now, p, Change{Kind: KindEvent, Container: container, Event: &PodEvent{Type: eventType, Reason: reason, Message: message}})
}

// addLine adds a line of output to the changes and to the last lines of the pod.
func (l *loop) addLine(now time.Time, p *pod, container string, line LogLine) {
	p.logs = append(p.logs, l.add(now, p, Change{Kind: KindLog, Container: container, Log: &line}))
	p.logs = p.logs[max(len(p.logs)-maxLogs, 0):]
	l.noticeLine(now, p, container, line.Text)
	if message := plainText(line.Text); line.Stream == "stderr" && strings.TrimSpace(message) != "" {
		p.lastErrors[container] = message
	}
}

// plainText returns a line without the escape sequences of terminals, limited to the length
// of a termination message.
func plainText(line string) string {
	if strings.ContainsRune(line, '\x1b') {
		// Control sequences such as colors, strings such as titles, and other sequences.
		escapes := regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[ -/]*[0-Z\\^-~])`)
		line = escapes.ReplaceAllString(line, "")
	}
	return text.Truncate(line, maxMessageBytes)
}

// addProbe adds a run of a probe, a transition, or both.
func (l *loop) addProbe(now time.Time, p *pod, probe *ProbeChange, transition bool) {
	copied := *probe
	copied.Transition = transition
	probe.Ran = false
	l.add(now, p, Change{Kind: KindProbe, Container: probe.Container, Probe: &copied})
}

// addContainers adds the containers whose status has changed.
func (l *loop) addContainers(now time.Time, p *pod, before, after []corev1.ContainerStatus) {
	for i := range after {
		if i >= len(before) || !equality.Semantic.DeepEqual(before[i], after[i]) {
			l.add(now, p, Change{Kind: KindContainer, Container: after[i].Name, Status: after[i].DeepCopy()})
		}
	}
}

// addConditions adds the differences between earlier conditions and the pod's current ones.
func (l *loop) addConditions(now time.Time, p *pod, before []corev1.PodCondition) {
	after := p.object.Status.Conditions
	for _, condition := range before {
		if lifecycle.Condition(after, condition.Type) == nil {
			l.add(now, p, Change{Kind: KindCondition, Condition: &condition, Removed: true})
		}
	}
	for _, condition := range after {
		was := lifecycle.Condition(before, condition.Type)
		if was == nil || was.Status != condition.Status || was.Reason != condition.Reason || was.Message != condition.Message {
			l.add(now, p, Change{Kind: KindCondition, Condition: &condition})
		}
	}
}

// addKeys adds the differences between earlier and current labels or annotations.
func (l *loop) addKeys(now time.Time, p *pod, kind ChangeKind, before, after map[string]string) {
	for _, key := range sets.List(sets.KeySet(before).Union(sets.KeySet(after))) {
		if isTicket(key) {
			continue
		}
		was, had := before[key]
		is, has := after[key]
		switch {
		case !has:
			l.add(now, p, Change{Kind: kind, Key: key, Value: was, Removed: true})
		case !had || was != is:
			l.add(now, p, Change{Kind: kind, Key: key, Value: is})
		}
	}
}
