// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package remote runs probes through the API server, with the probers of the agent: commands
// through the subresource exec of the pod, and connections through its subresource portforward. As
// kubectl, it uses WebSockets, and SPDY if the upgrade to WebSockets fails.
//
// Every run has its own session, whose start does not count against the timeout of the probe. The
// session ends with the run, whatever the other side does.
package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/program/permission"
)

// openTimeout limits the start of a session.
const openTimeout = 30 * time.Second

// Client opens sessions with pods. It is safe for concurrent use.
type Client struct {
	config  *rest.Config
	base    *url.URL
	path    string
	version string
}

// NewClient returns a client with the configuration. It makes no request. Network probes send the
// user agent kube-probe/<version>.
func NewClient(config *rest.Config, version string) (*Client, error) {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	// The sessions last longer than a request.
	config.Timeout = 0
	base, path, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("read address of the API server: %w", err)
	}
	return &Client{config: config, base: base, path: path, version: version}, nil
}

// Prober returns the probers for the container. As an agent, they try up to three times to get a
// result.
//
// The API server cannot end a command. After a timeout, the command may continue in the container
// until it ends or its output is closed, which an agent prevents. Connections go to localhost in the
// pod, and those of an agent to the address of the pod.
func (c *Client) Prober(container Container) probe.Prober {
	network := &networkProber{c, container}
	return probe.Set{
		probe.HandlerExec: &execProber{c, container}, probe.HandlerHTTP: network, probe.HandlerTCP: network, probe.HandlerGRPC: network,
	}
}

// Container is a container of a pod.
type Container struct {
	// Pod is the pod.
	Pod types.NamespacedName
	// Name is the name of the container.
	Name string
}

// subresource returns the request for a subresource of the pod.
func (c *Client) subresource(pod types.NamespacedName, name string) *rest.Request {
	return rest.NewRequestWithClient(c.base, c.path, rest.ClientContentConfig{GroupVersion: corev1.SchemeGroupVersion}, nil).Verb(http.MethodPost).
		Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource(name)
}

// DeniedError is the error of a session that needs a permission that the user lacks.
type DeniedError struct {
	// Missing is the permission to create a subresource of pods.
	Missing permission.Missing
	// Err is the answer of the API server.
	Err error
}

// Error names the permission.
func (e *DeniedError) Error() string { return fmt.Sprintf("%s: %v", e.Missing, e.Err) }

// Unwrap returns the answer, and probe.ErrNoWay.
func (e *DeniedError) Unwrap() []error { return []error{e.Err, probe.ErrNoWay} }

// openError returns the error of a session that could not be opened.
func openError(err error, subresource string, pod types.NamespacedName) error {
	switch {
	case apierrors.IsForbidden(err):
		missing := permission.Missing{Resource: permission.Resource("pods/" + subresource), Verb: "create", Namespace: pod.Namespace}
		return &DeniedError{Missing: missing, Err: err}
	case errors.Is(err, context.Canceled):
		return err
	default:
		return &noWayError{fmt.Errorf("%s of pod %s: %w", subresource, pod.Name, err)}
	}
}

// noWayError is the error of a session that could not be opened.
type noWayError struct{ error }

// Unwrap returns the reason, and probe.ErrNoWay.
func (e *noWayError) Unwrap() []error { return []error{e.error, probe.ErrNoWay} }

// upgrade follows the request that opens a session. client-go returns its errors as text, and does
// not tell when the session is open.
type upgrade struct {
	// ctx ends the request.
	ctx    context.Context //nolint:containedctx // client-go takes no context for port-forwards
	opened chan struct{}

	mu   sync.Mutex
	open bool
	err  error
}

func newUpgrade(ctx context.Context) *upgrade {
	return &upgrade{ctx: ctx, opened: make(chan struct{})}
}

// follow returns the configuration for the session.
func (u *upgrade) follow(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &follower{upgrade: u, next: next} })
	return config
}

// cause returns the answer of the API server to the last request, or err if it is unknown.
func (u *upgrade) cause(err error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err == nil {
		return err
	}
	return u.err
}

// isOpen reports whether the session has been opened.
func (u *upgrade) isOpen() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.open
}

func (u *upgrade) note(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.err = err
	if err == nil && !u.open {
		u.open = true
		close(u.opened)
	}
}
