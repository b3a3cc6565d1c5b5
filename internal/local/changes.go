// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/seamark-dev/seamark/internal/local/podstatus"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// maxMessageBytes is the maximum length of a termination message, as in a cluster.
const maxMessageBytes = 4096

// changes collects the changes of one turn of the loop. The loop passes them to Observe
// when it no longer holds the lock.
type changes struct{ pending []Change }

// take returns the changes in order and forgets them.
func (c *changes) take() []Change {
	pending := c.pending
	c.pending = nil
	return pending
}

func (c *changes) add(change Change) { c.pending = append(c.pending, change) }

// phase adds the pod's current phase.
func (c *changes) phase(now time.Time, p *pod) {
	change := p.change(now, KindPod, "")
	change.Phase = p.object.Status.Phase
	c.add(change)
}

// event adds an event about a container.
func (c *changes) event(now time.Time, p *pod, container, eventType, reason, message string) {
	change := p.change(now, KindEvent, container)
	change.Event = &PodEvent{Type: eventType, Reason: reason, Message: message}
	c.add(change)
}

// log adds a line of output to the changes and to the pod's log.
func (c *changes) log(now time.Time, p *pod, container string, line LogLine) {
	change := p.change(now, KindLog, container)
	change.Log = &line
	p.logs.add(change)
	if line.Stream == "stderr" {
		if message := plainText(line.Text); strings.TrimSpace(message) != "" {
			p.lastErrors[container] = message
		}
	}
	c.add(change)
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

// probe adds a run of a probe, a transition, or both.
func (c *changes) probe(now time.Time, p *pod, probe *ProbeChange, transition bool) {
	change := p.change(now, KindProbe, probe.Container)
	copied := *probe
	copied.Transition = transition
	probe.Ran = false
	change.Probe = &copied
	c.add(change)
}

// containers adds the containers whose status has changed.
func (c *changes) containers(now time.Time, p *pod, before, after []corev1.ContainerStatus) {
	for i := range after {
		if i < len(before) && equality.Semantic.DeepEqual(before[i], after[i]) {
			continue
		}
		change := p.change(now, KindContainer, after[i].Name)
		change.Status = after[i].DeepCopy()
		c.add(change)
	}
}

// conditions adds the differences between earlier conditions and the pod's current ones.
func (c *changes) conditions(now time.Time, p *pod, before []corev1.PodCondition) {
	after := p.object.Status.Conditions
	for _, condition := range before {
		if podstatus.Condition(after, condition.Type) == nil {
			c.condition(now, p, condition, true)
		}
	}
	for _, condition := range after {
		was := podstatus.Condition(before, condition.Type)
		if was == nil || was.Status != condition.Status || was.Reason != condition.Reason || was.Message != condition.Message {
			c.condition(now, p, condition, false)
		}
	}
}

func (c *changes) condition(now time.Time, p *pod, condition corev1.PodCondition, removed bool) {
	change := p.change(now, KindCondition, "")
	change.Condition, change.Removed = &condition, removed
	c.add(change)
}

// keys adds the differences between earlier and current labels or annotations.
func (c *changes) keys(now time.Time, p *pod, kind ChangeKind, before, after map[string]string) {
	all := maps.Clone(before)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, after)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		was, had := before[key]
		is, has := after[key]
		if had == has && was == is {
			continue
		}
		change := p.change(now, kind, "")
		change.Key, change.Value, change.Removed = key, is, !has
		if !has {
			change.Value = was
		}
		c.add(change)
	}
}
