// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	stopManager  = "kubectl -n seamark-system scale deployment seamark-manager --replicas=0"
	startManager = "kubectl -n seamark-system scale deployment seamark-manager --replicas=2"
	// No node has the label of the selector.
	stopAgents  = `kubectl -n seamark-system patch daemonset seamark-agent -p '{"spec":{"template":{"spec":{"nodeSelector":{"demo":"none"}}}}}'`
	startAgents = `kubectl -n seamark-system patch daemonset seamark-agent -p '{"spec":{"template":{"spec":{"nodeSelector":{"demo":null}}}}}'`
	// rollOut changes the template.
	rollOut     = "kubectl set env deployment game-server RELEASE=2"
	rolloutEnds = "kubectl rollout status deployment game-server --timeout=2m"
)

// match is the demo of a server that plays a match, which nothing interrupts.
type match struct {
	*servers
	// server is the pod with the match. It is nil before the match begins.
	server *corev1.Pod
}

// play runs all scenes on a cluster from which it removes the example first. It starts again what it stopped, also if a
// scene fails. It returns an error if the match is interrupted, or if a request that must wait does not.
func (m *match) play(ctx context.Context) (err error) {
	if err := m.run(ctx, "kubectl delete --ignore-not-found --cascade=foreground -f "+serversFolder, io.Discard); err != nil {
		return err
	}
	m.scene("Five idle game servers on two nodes, and a guard: a PodDisruptionBudget of servers that are not marked as idle.")
	if err := m.commands(ctx, "kubectl apply -f "+serversFolder, "kubectl set env deployment game-server MATCHES=on-demand", rolloutEnds); err != nil {
		return err
	}
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, m.run(context.WithoutCancel(ctx), "kubectl uncordon "+m.server.Spec.NodeName, io.Discard))
	}()
	if err := m.refuseDelete(ctx, "The server plays. The API server refuses its deletion."); err != nil {
		return err
	}
	drained := m.drain(ctx)
	if err := m.disrupt(ctx); err != nil {
		return err
	}
	if err := m.without(ctx); err != nil {
		return err
	}
	return m.end(ctx, drained)
}

// commands shows and runs command lines.
func (m *match) commands(ctx context.Context, lines ...string) error {
	for _, line := range lines {
		if err := m.command(ctx, line); err != nil {
			return err
		}
	}
	return nil
}

// until waits until a condition holds for the servers that are not terminating.
func (m *match) until(ctx context.Context, what string, holds func([]corev1.Pod) bool) error {
	err := wait.PollUntilContextTimeout(ctx, look, patience, true, func(ctx context.Context) (bool, error) {
		pods, err := m.pods.List(ctx, metav1.ListOptions{LabelSelector: serversSelector})
		if err != nil {
			return false, fmt.Errorf("list the game servers: %w", err)
		}
		return holds(slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })), nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s: %w", what, err)
	}
	return nil
}

// alone reports whether the server with the match is the last one of those that are to be replaced, and whether all others
// are ready.
func (m *match) alone(pods []corev1.Pod, old func(*corev1.Pod) bool) bool {
	left, ready := 0, 0
	for i := range pods {
		switch pod := &pods[i]; {
		case pod.UID == m.server.UID:
			left++
		case old(pod):
			return false
		case isReady(pod):
			ready++
		}
	}
	return left == 1 && ready >= size-1
}

// begin begins a match on a server whose node has another server, too.
func (m *match) begin(ctx context.Context) error {
	err := m.until(ctx, "all servers are idle, two of them on one node", func(pods []corev1.Pod) bool {
		nodes := map[string]int{}
		for i := range pods {
			if !isIdle(&pods[i]) || !isReady(&pods[i]) {
				return false
			}
			if nodes[pods[i].Spec.NodeName]++; nodes[pods[i].Spec.NodeName] == 2 {
				m.server = &pods[i]
			}
		}
		return len(pods) == size && len(nodes) > 1
	})
	if err != nil {
		return err
	}
	m.scene("A match begins. Whoever starts one waits for the mark before the players join.")
	return m.commands(ctx,
		"kubectl exec "+m.server.Name+" -- touch /state/match",
		"kubectl wait pod "+m.server.Name+" --for=jsonpath='{.metadata.labels."+idleLabel+"}'=false --timeout=1m",
		"kubectl get pods -o wide -L "+idleLabel)
}

// refuseDelete shows that the server cannot be deleted.
func (m *match) refuseDelete(ctx context.Context, scene string) error {
	m.scene(scene)
	if err := m.command(ctx, "kubectl delete --wait=false pod "+m.server.Name); err == nil {
		return fmt.Errorf("server %s was deleted during a match", m.server.Name)
	}
	return nil
}

// drain begins a drain of the node, and returns a channel with its result.
func (m *match) drain(ctx context.Context) <-chan error {
	m.scene("A drain of its node evicts the idle servers, and waits.")
	drained := make(chan error, 1)
	line := "kubectl drain " + m.server.Spec.NodeName + " --ignore-daemonsets --delete-emptydir-data --force --timeout=5m"
	_ = m.show(ctx, line+" &\n")
	go func() {
		var out bytes.Buffer
		err := m.run(ctx, line+" 2>&1", &out)
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out.String())
		}
		drained <- err
	}()
	return drained
}

// disrupt waits until the drain has evicted the idle servers, and updates the Deployment.
func (m *match) disrupt(ctx context.Context) error {
	const list = "kubectl get pods -o wide -L " + idleLabel
	err := m.until(ctx, "the idle servers of the node have moved", func(pods []corev1.Pod) bool {
		return m.alone(pods, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == m.server.Spec.NodeName })
	})
	if err != nil {
		return err
	}
	if err := m.command(ctx, list); err != nil {
		return err
	}
	m.scene("A rollout replaces the idle servers, and waits for the busy one.")
	if err := m.command(ctx, rollOut); err != nil {
		return err
	}
	err = m.until(ctx, "the idle servers are replaced", func(pods []corev1.Pod) bool {
		return m.alone(pods, func(pod *corev1.Pod) bool {
			return !slices.ContainsFunc(pod.Spec.Containers[0].Env, func(v corev1.EnvVar) bool { return v.Name == "RELEASE" })
		})
	})
	if err != nil {
		return err
	}
	return m.command(ctx, list)
}

// without shows that the guard needs no program of Seamark.
func (m *match) without(ctx context.Context) (err error) {
	defer func() {
		for _, line := range []string{startAgents, startManager} {
			err = errors.Join(err, m.run(context.WithoutCancel(ctx), line, io.Discard))
		}
	}()
	for _, stop := range []struct{ program, line string }{{"manager", stopManager}, {"agents", stopAgents}} {
		m.scene("Stop the " + stop.program + " of Seamark.")
		gone := "kubectl -n seamark-system wait pod --selector app.kubernetes.io/component=" + strings.TrimSuffix(stop.program, "s") +
			" --for=delete --timeout=1m"
		if err := m.commands(ctx, stop.line, gone); err != nil {
			return err
		}
		if err := m.refuseDelete(ctx, "The guard protects the server all the same."); err != nil {
			return err
		}
	}
	m.scene("Start both again.")
	return m.commands(ctx, startAgents, startManager)
}

// end ends the match, and waits until the drain and the rollout end by themselves.
func (m *match) end(ctx context.Context, drained <-chan error) error {
	pod, err := m.pods.Get(ctx, m.server.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get the server with the match: %w", err)
	}
	var said bytes.Buffer
	if err := m.run(ctx, "kubectl logs --tail=1 "+pod.Name, &said); err != nil {
		return err
	}
	if pod.UID != m.server.UID || pod.DeletionTimestamp != nil || strings.TrimSpace(said.String()) != "playing match 1" {
		return fmt.Errorf("the match of server %s was interrupted: the server says %q", pod.Name, said.String())
	}
	m.scene("The match ends. The rollout and the drain end by themselves.")
	if err := m.commands(ctx, "kubectl exec "+pod.Name+" -- rm /state/match", rolloutEnds); err != nil {
		return err
	}
	if err := <-drained; err != nil {
		return err
	}
	m.note("The node is drained. Matches interrupted: 0.")
	return m.command(ctx, "kubectl get pods -o wide -L "+idleLabel)
}
