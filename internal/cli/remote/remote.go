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
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/program/apierror"
	"github.com/seamark-dev/seamark/internal/program/permission"
)

// openTimeout limits the start of a session.
const openTimeout = 30 * time.Second

// Client opens sessions with pods. It is safe for concurrent use.
type Client struct {
	config  *rest.Config
	core    rest.Interface
	version string
}

// NewClient returns a client with the configuration. It makes no request. Network probes send the
// user agent kube-probe/<version>.
func NewClient(config *rest.Config, version string) (*Client, error) {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion, config.NegotiatedSerializer = "/api", &corev1.SchemeGroupVersion, scheme.Codecs.WithoutConversion()
	// The sessions last longer than a request.
	config.Timeout = 0
	core, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("read address of the API server: %w", err)
	}
	return &Client{config: config, core: core, version: version}, nil
}

// Prober returns the probers for the container. As an agent, they try up to three times to get a
// result.
//
// The API server cannot end a command. After a timeout, the command may continue in the container
// until it ends or its output is closed, which an agent prevents. Connections go to localhost in the
// pod, and those of an agent to the address of the pod.
func (c *Client) Prober(container Container) probing.Prober {
	network := &networkProber{c, container}
	return probing.Set{
		probing.HandlerExec: &execProber{c, container}, probing.HandlerHTTP: network, probing.HandlerTCP: network, probing.HandlerGRPC: network,
	}
}

// Container is a container of a pod.
type Container struct {
	// Pod is the pod.
	Pod types.NamespacedName
	// Name is the name of the container.
	Name string
}

func (c *Client) subresource(pod types.NamespacedName, name string) *rest.Request {
	return c.core.Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource(name)
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

// Unwrap returns the answer, and probing.ErrNoWay.
func (e *DeniedError) Unwrap() []error { return []error{e.Err, probing.ErrNoWay} }

// openError returns the error of a session that could not be opened.
func openError(err error, subresource string, pod types.NamespacedName) error {
	switch {
	case apierrors.IsForbidden(err):
		missing := permission.Missing{
			Resource: permission.Resource("pods/" + subresource), Verb: "create", Namespace: pod.Namespace, User: apierror.User(err),
		}
		return &DeniedError{Missing: missing, Err: err}
	case errors.Is(err, context.Canceled):
		return err
	default:
		return &noWayError{fmt.Errorf("%s of pod %s: %w", subresource, pod.Name, err)}
	}
}

// noWayError is the error of a session that could not be opened.
type noWayError struct{ error }

// Unwrap returns the reason, and probing.ErrNoWay.
func (e *noWayError) Unwrap() []error { return []error{e.error, probing.ErrNoWay} }

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

// cause returns why the session is not open: the end of its context, which may be the reason for any error, else the answer
// of the API server to the last request, or err if it is unknown.
func (u *upgrade) cause(err error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return cmp.Or(context.Cause(u.ctx), u.err, err)
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

// maxAnswerBytes limits an answer of the API server that is not a session.
const maxAnswerBytes = 64 << 10

// follower is the transport of an upgrade.
type follower struct {
	upgrade *upgrade
	next    http.RoundTripper
}

var _ utilnet.RoundTripperWrapper = (*follower)(nil)

// WrappedRoundTripper returns the transport that sends the request.
func (f *follower) WrappedRoundTripper() http.RoundTripper { return f.next }

// RoundTrip sends the request. An answer that opens no session is an error.
func (f *follower) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := f.next.RoundTrip(request.WithContext(f.upgrade.ctx))
	var failure *httpstream.UpgradeFailureError
	if errors.As(err, &failure) {
		f.upgrade.note(failure.Cause)
		return nil, err
	}
	if err == nil && response.StatusCode != http.StatusSwitchingProtocols {
		err = answerOf(response)
	}
	f.upgrade.note(err)
	if err != nil {
		return nil, err
	}
	return response, nil
}

// answerOf returns an answer that opens no session as an error.
func answerOf(response *http.Response) error {
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return fmt.Errorf("read answer %s: %w", response.Status, err)
	}
	status := metav1.Status{}
	if err := json.Unmarshal(body, &status); err == nil && status.Kind == "Status" {
		return &apierrors.StatusError{ErrStatus: status}
	}
	return fmt.Errorf("answer %s: %s", response.Status, strings.TrimSpace(string(body)))
}
