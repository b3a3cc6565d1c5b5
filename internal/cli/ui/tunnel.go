// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
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
	if missing, err := cluster.MissingOf(err, "list", cluster.Pods, namespace); err != nil || missing != nil {
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
		if pod.Spec.ServiceAccountName != managerName || !isReady(pod) {
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

func isReady(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
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
// has ended.
type tunnel struct {
	config    *rest.Config
	reader    client.Reader
	namespace string

	mu         sync.Mutex
	connection httpstream.Connection
	target     target
	requests   int
}

// dial opens a stream to the manager. It has the form that http.Transport requires.
func (t *tunnel) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.connection == nil || isClosed(t.connection) {
		if err := t.connect(ctx); err != nil {
			return nil, err
		}
	}
	conn, err := t.open()
	if err != nil {
		_ = t.connection.Close()
		t.connection = nil
		return nil, fmt.Errorf("forward port %d of pod %s: %w", t.target.port, t.target.pod, err)
	}
	return conn, nil
}

func isClosed(connection httpstream.Connection) bool {
	select {
	case <-connection.CloseChan():
		return true
	default:
		return false
	}
}

// connect connects to a manager, by WebSocket, or by SPDY with older API servers.
func (t *tunnel) connect(ctx context.Context) error {
	found, err := findManager(ctx, t.reader, t.namespace)
	if err != nil {
		return err
	}
	base, _, err := rest.DefaultServerUrlFor(t.config)
	if err != nil {
		return fmt.Errorf("forward a port: %w", err)
	}
	address := base.JoinPath("api", "v1", "namespaces", found.pod.Namespace, "pods", found.pod.Name, "portforward")
	primary, err := portforward.NewSPDYOverWebsocketDialerForStreaming(address, t.config)
	if err != nil {
		return fmt.Errorf("forward a port: %w", err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(t.config)
	if err != nil {
		return fmt.Errorf("forward a port: %w", err)
	}
	secondary := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, address)
	dialer := portforward.NewFallbackDialerForStreaming(primary, secondary, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	connection, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return fmt.Errorf("forward a port of pod %s: %w", found.pod, err)
	}
	t.connection, t.target = connection, found
	return nil
}

// open opens the streams of one forwarded connection.
func (t *tunnel) open() (net.Conn, error) {
	t.requests++
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, strconv.Itoa(int(t.target.port)))
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.Itoa(t.requests))
	failed, err := t.connection.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("create a stream: %w", err)
	}
	// Nothing is written to it.
	_ = failed.Close()
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := t.connection.CreateStream(headers)
	if err != nil {
		t.connection.RemoveStreams(failed)
		return nil, fmt.Errorf("create a stream: %w", err)
	}
	c := &forwarded{Stream: data, remove: func() { t.remove(failed, data) }, address: t.target}
	go c.watch(failed)
	return c, nil
}

func (t *tunnel) remove(streams ...httpstream.Stream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.connection != nil {
		t.connection.RemoveStreams(streams...)
	}
}

// close ends all connections.
func (t *tunnel) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.connection != nil {
		_ = t.connection.Close()
	}
}

// forwarded is a forwarded connection.
type forwarded struct {
	httpstream.Stream
	remove  func()
	address target
	once    sync.Once
}

// watch ends the connection when the node reports that it cannot forward it.
func (c *forwarded) watch(failed io.Reader) {
	if message, err := io.ReadAll(failed); err != nil || len(message) > 0 {
		_ = c.Close()
	}
}

// Close ends the connection.
func (c *forwarded) Close() error {
	c.once.Do(func() {
		_ = c.Reset()
		c.remove()
	})
	return nil
}

// Network and String describe the address of the manager.
func (a target) Network() string { return "portforward" }
func (a target) String() string  { return fmt.Sprintf("%s:%d", a.pod, a.port) }

// LocalAddr and RemoteAddr return the address of the manager.
func (c *forwarded) LocalAddr() net.Addr  { return c.address }
func (c *forwarded) RemoteAddr() net.Addr { return c.address }

// SetDeadline, SetReadDeadline and SetWriteDeadline do nothing: streams have no deadlines, and the
// transport of package http closes connections instead.
func (c *forwarded) SetDeadline(time.Time) error      { return nil }
func (c *forwarded) SetReadDeadline(time.Time) error  { return nil }
func (c *forwarded) SetWriteDeadline(time.Time) error { return nil }
