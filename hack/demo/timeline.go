// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// columnWidth is the width of each column of a timeline.
const columnWidth = 42

// timeline prints the events of several sets side by side, as they happen. It is safe for
// concurrent use.
type timeline struct {
	out io.Writer

	mu    sync.Mutex
	begun time.Time
}

// head prints the titles of the columns, and starts the clock.
func (t *timeline) head(now time.Time, titles ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun = now
	fmt.Fprintln(t.out, strings.TrimRight("    TIME     "+cells(titles), " "))
}

// add prints one event in a column, which counts from 0. Events before the clock started are not
// printed.
func (t *timeline) add(now time.Time, column int, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun.IsZero() {
		return
	}
	row := make([]string, column+1)
	row[column] = text
	fmt.Fprintf(t.out, "    %-8s %s\n", fmt.Sprintf("+%.1fs", now.Sub(t.begun).Seconds()), strings.TrimRight(cells(row), " "))
}

// cells returns the texts at the positions of their columns.
func cells(texts []string) string {
	var b strings.Builder
	for _, text := range texts {
		fmt.Fprintf(&b, "%-*s", columnWidth, text)
	}
	return b.String()
}

// follower finds out what happens to the replicas of one database. It is safe for concurrent use.
type follower struct {
	// event is called for each event, in order.
	event func(text string)

	mu       sync.Mutex
	primary  string
	switches int
	pods     map[string]replica
}

// replica is what a follower remembers of a pod.
type replica struct {
	uid   types.UID
	image string
	// replaced is the container that an update in place ends, or empty.
	replaced string
	// ending reports whether the pod is terminating, and done whether its change was reported as
	// complete.
	ending, done bool
}

func newFollower(event func(string)) *follower {
	return &follower{event: event, pods: map[string]replica{}}
}

// holds handles the name of the primary. The name is empty while there is none.
func (f *follower) holds(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if name == "" || name == f.primary {
		return
	}
	if f.primary != "" {
		f.switches++
		f.event(fmt.Sprintf("SWITCH %d: %s -> %s", f.switches, f.primary, name))
	}
	f.primary = name
}

// sees handles a change of a pod.
func (f *follower) sees(pod *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, known := f.pods[pod.Name]
	image, ending, container := pod.Spec.Containers[0].Image, pod.DeletionTimestamp != nil, ""
	if len(pod.Status.ContainerStatuses) != 0 {
		container = pod.Status.ContainerStatuses[0].ContainerID
	}
	switch {
	case !known:
		r = replica{uid: pod.UID, image: image, done: true}
	case r.uid != pod.UID:
		r = replica{uid: pod.UID, image: image}
		f.event(fmt.Sprintf("%s is created, %s", pod.Name, tag(image)))
	case ending && !r.ending:
		r.done = false
		f.event(fmt.Sprintf("%s is deleted%s", pod.Name, f.role(pod.Name)))
	case image != r.image:
		r = replica{uid: pod.UID, image: image, replaced: container}
		f.event(fmt.Sprintf("%s is updated in place%s", pod.Name, f.role(pod.Name)))
	}
	r.ending = ending
	if !r.done && !ending && isReady(pod) && container != r.replaced {
		r.done = true
		f.event(fmt.Sprintf("%s is ready, %s", pod.Name, tag(image)))
	}
	f.pods[pod.Name] = r
}

// role returns a remark for the primary.
func (f *follower) role(name string) string {
	if name == f.primary {
		return " (primary)"
	}
	return ""
}

// result returns the primary, and how often it has changed.
func (f *follower) result() (primary string, switches int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.primary, f.switches
}

// restart sets the number of switches to 0.
func (f *follower) restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.switches = 0
}

// updated reports whether as many replicas run the image and are ready.
func (f *follower) updated(replicas int, image string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	count := 0
	for _, r := range f.pods {
		if r.done && !r.ending && r.image == image {
			count++
		}
	}
	return count == replicas
}

// tag returns the tag of an image.
func tag(image string) string { return image[strings.LastIndexByte(image, ':')+1:] }

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
