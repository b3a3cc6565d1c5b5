// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/test/expect"
)

// program is a program with three replicas, of which one is the primary.
type program struct {
	// recipe is the folder of the recipe, and title the name of the program for readers.
	recipe, title string
	// name is the name of the set and the value of the label app, and image the name of the image without a tag.
	name, image string
	// primary is the label of the primary, and other that of the others, as KEY=VALUE.
	primary, other string
	// shared is whether two pods may have the label of the primary for a moment.
	shared bool
	port   int
	// standing returns the primary and the elections so far. It returns an error if the pods do not agree.
	standing func(ctx context.Context, pods []corev1.Pod) (standing, error)
	// open connects to an address, and read returns the numbers that were written.
	open func(ctx context.Context, address string) (session, error)
	read func(ctx context.Context, address string) (map[int]bool, error)
}

// standing is the primary, and how many elections or switchovers there were, as the counter of the program says.
type standing struct {
	primary   string
	elections int
}

// programs are those whose recipes share a test and whose upgrades are measured.
func programs() []program { return []program{etcd(), patroni(), redis()} }

// session is a connection of a client.
type session interface {
	// write stores a number. It returns nil if the program has acknowledged it.
	write(ctx context.Context, number int) error
	Close() error
}

// upgrade creates the objects of the recipe, and updates the replicas while a client writes to the pod with the label of the primary:
// the others are updated first, and the primary changes once. The client still writes when it returns.
func (s *suite) upgrade(p program) (standing, *writer) {
	s.Helper()
	s.apply()
	if !p.shared {
		s.atMostOne(p.primary)
	}
	before := s.atRest(p, "v1")
	updates := s.recordRoles(p.image+":v2", p.role)
	writer := s.write(p, 0, s.labelled(p))
	s.setImage("statefulsets.apps.kruise.io/"+p.name, p.image+":v2")
	after := s.atRest(p, "v2")

	names, roles := updates.updated()
	expect.Equal(s, "roles in the order of the updates", []string{p.other, p.other, p.primary}, roles)
	expect.Equal(s, "the pod that is updated last", before.primary, names[len(names)-1])
	if after.elections != before.elections+1 || after.primary == before.primary {
		s.Errorf("primary %s after %d elections became %s after %d, want another one after one more election",
			before.primary, before.elections, after.primary, after.elections)
	}
	return after, writer
}

// atRest waits until the pods are ready with the tag of the image, agree about the primary, and have labels that show it.
func (s *suite) atRest(p program, tag string) standing {
	s.Helper()
	var found standing
	s.settled("app="+p.name, p.image+":"+tag, 3, func(ctx context.Context, pods []corev1.Pod) (err error) {
		if found, err = p.standing(ctx, pods); err != nil {
			return err
		}
		return p.labels(pods, found.primary)
	})
	return found
}

// role is the label of its role that the pod has, or "unknown".
func (p program) role(pod *corev1.Pod) string {
	switch isPrimary, isOther := has(pod, p.primary), has(pod, p.other); {
	case isPrimary && !isOther:
		return p.primary
	case isOther && !isPrimary:
		return p.other
	}
	return "unknown"
}

// has reports whether a pod has a label, as KEY=VALUE.
func has(pod *corev1.Pod, label string) bool {
	key, value, _ := strings.Cut(label, "=")
	return pod.Labels[key] == value
}

// labels returns an error if a pod does not have the label of its role.
func (p program) labels(pods []corev1.Pod, primary string) error {
	for i := range pods {
		want := p.other
		if pods[i].Name == primary {
			want = p.primary
		}
		if got := p.role(&pods[i]); got != want {
			return fmt.Errorf("pod %s has the labels %v: the role %s, want %s", pods[i].Name, pods[i].Labels, got, want)
		}
	}
	return nil
}

// labelled returns the address of the pod with the label of the primary.
func (s *suite) labelled(p program) func(context.Context) ([]string, error) {
	addresses := s.addresses(p, p.primary)
	return func(ctx context.Context) ([]string, error) {
		found, err := addresses(ctx)
		if err == nil && len(found) != 1 {
			err = fmt.Errorf("%d pods have the label of the primary", len(found))
		}
		return found, err
	}
}

// addresses returns the addresses of the pods with a label, as KEY=VALUE.
func (s *suite) addresses(p program, selector string) func(context.Context) ([]string, error) {
	return func(ctx context.Context) (addresses []string, err error) {
		pods, err := s.pods(ctx, selector)
		for _, pod := range pods {
			if pod.Status.PodIP != "" {
				addresses = append(addresses, p.addressOf(pod))
			}
		}
		return addresses, err
	}
}

func (p program) addressOf(pod corev1.Pod) string {
	return fmt.Sprintf("%s:%d", pod.Status.PodIP, p.port)
}

// nothingLost stops the client, and fails the test if a pod lacks a write that was acknowledged.
func (s *suite) nothingLost(p program, w *writer, pod string) {
	s.Helper()
	w.stop()
	found, err := p.read(s.Context(), p.addressOf(*s.Pod(pod)))
	expect.NoErrorf(s, err, "read what was written")
	s.Logf("%d writes were acknowledged, %d were not, the last one because of: %v", len(w.acked), w.failed, w.lastError)
	expect.Equal(s, "acknowledged writes that are lost", nil, w.missing(found))
}

// others returns the names of the pods of a program that are not named.
func (s *suite) others(p program, names ...string) []string {
	s.Helper()
	pods, err := s.pods(s.Context(), "app="+p.name)
	expect.NoErrorf(s, err, "list pods")
	var others []string
	for _, pod := range pods {
		if !slices.Contains(names, pod.Name) {
			others = append(others, pod.Name)
		}
	}
	return others
}

// getJSON reads the answer to a request.
func getJSON(ctx context.Context, address string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*attempt)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return fmt.Errorf("create request: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("call the program: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		return fmt.Errorf("read the answer of %s: %w", address, err)
	}
	return nil
}
