// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/remote"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

const (
	// managerName is the name of the manager's lease and service account.
	managerName = "seamark-manager"
	// portName is the name of the container port that serves the page.
	portName = "ui"
)

// target is a manager's pod and the port that serves the page.
type target struct {
	pod  types.NamespacedName
	port int32
}

// findManager returns the manager that serves the page.
func findManager(ctx context.Context, reader client.Reader, namespace string) (target, error) {
	var pods corev1.PodList
	err := reader.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{
		"app.kubernetes.io/name": "seamark", "app.kubernetes.io/component": "manager",
	})
	if missing, err := cluster.MissingOf(err, "list", permission.Pods, namespace); err != nil || missing != nil {
		if err == nil {
			err = errors.New(missing.String())
		}
		return target{}, fmt.Errorf("find the manager: %w", err)
	}
	return choose(pods.Items, leaderOf(ctx, reader, namespace), namespace)
}

// choose returns the leader, or another manager if the leader is not ready or does not serve the
// page, as in the middle of an update of the managers.
func choose(pods []corev1.Pod, leader, namespace string) (target, error) {
	ready := false
	var found *target
	for i := range pods {
		pod := &pods[i]
		// The token of the user is for the manager only.
		if pod.Spec.ServiceAccountName != managerName || !planning.Ready(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		ready = true
		if port := portOf(pod); port != 0 && (found == nil || pod.Name == leader) {
			found = &target{pod: client.ObjectKeyFromObject(pod), port: port}
		}
	}
	switch {
	case found != nil:
		return *found, nil
	case ready:
		return target{}, errors.New("the manager does not serve the page (ui.enabled of the chart)")
	default:
		return target{}, fmt.Errorf("no manager is ready in namespace %s: is Seamark installed in another one (--seamark-namespace)?", namespace)
	}
}

// portOf returns the port at which the pod serves the page, or 0.
func portOf(pod *corev1.Pod) int32 {
	for i := range pod.Spec.Containers {
		for _, port := range pod.Spec.Containers[i].Ports {
			if port.Name == portName {
				return port.ContainerPort
			}
		}
	}
	return 0
}

// leaderOf returns the name of the leader's pod. It is empty if the lease cannot be read: all
// managers serve the page.
func leaderOf(ctx context.Context, reader client.Reader, namespace string) string {
	lease := &coordinationv1.Lease{}
	if err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: managerName}, lease); err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return name
}

// tunnel connects to a manager through port-forwards. It finds the manager again after a connection
// has failed.
type tunnel struct {
	remote    *remote.Client
	reader    client.Reader
	namespace string

	mu      sync.Mutex
	session *remote.Session
	target  target
}

// dial connects to the manager. It has the form that http.Transport requires.
func (t *tunnel) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	session, found, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := session.DialContext(ctx, network, net.JoinHostPort(found.pod.Name, strconv.Itoa(int(found.port))))
	if err != nil {
		return nil, fmt.Errorf("forward a port of pod %s: %w", found.pod, err)
	}
	return conn, nil
}

// open returns the session with a manager. It opens another one if the session is not usable.
func (t *tunnel) open(ctx context.Context) (*remote.Session, target, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.session != nil && t.session.Usable() {
		return t.session, t.target, nil
	}
	t.end()
	found, err := findManager(ctx, t.reader, t.namespace)
	if err != nil {
		return nil, found, err
	}
	session, err := t.remote.Forward(ctx, found.pod)
	if denied := (*remote.DeniedError)(nil); errors.As(err, &denied) {
		err = fmt.Errorf("%s; %s", denied.Missing, denied.Missing.Fix())
	}
	if err != nil {
		return nil, found, fmt.Errorf("forward a port: %w", err)
	}
	t.session, t.target = session, found
	return session, found, nil
}

// end requires the lock.
func (t *tunnel) end() {
	if t.session != nil {
		t.session.Close()
		t.session = nil
	}
}

// close ends all connections.
func (t *tunnel) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end()
}
