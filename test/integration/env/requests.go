// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/kubeconfig"
)

// Request is a kind of request.
type Request struct {
	// Verb is the verb in the API server's metrics: GET, LIST, WATCH, POST, PUT, PATCH, APPLY
	// (server-side apply), DELETE, DELETECOLLECTION.
	Verb string
	// Group is the API group, empty for the core group.
	Group string
	// Resource is the plural name, such as pods.
	Resource string
	// Subresource is empty for the object itself.
	Subresource string
	// Code is the HTTP status of the response.
	Code string
}

// Requests counts the requests that the API server has completed since its start. A watch
// counts when it ends.
type Requests map[Request]int

// Requests reads the counts from the API server's metrics. The server counts a request after
// the response, so the last few may be missing for some milliseconds.
func (e *Env) Requests(ctx context.Context) (Requests, error) {
	clientset, err := kubernetes.NewForConfig(e.Config)
	if err != nil {
		return nil, fmt.Errorf("read the API server's metrics: %w", err)
	}
	text, err := clientset.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the API server's metrics: %w", err)
	}
	return parseRequests(text)
}

func parseRequests(text []byte) (Requests, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parse the API server's metrics: %w", err)
	}
	return CountRequests(families), nil
}

// CountRequests returns the counts in the API server's metrics.
func CountRequests(families map[string]*dto.MetricFamily) Requests {
	requests := Requests{}
	for _, metric := range families["apiserver_request_total"].GetMetric() {
		var key Request
		dryRun := false
		for _, label := range metric.GetLabel() {
			switch label.GetName() {
			case "verb":
				key.Verb = label.GetValue()
			case "group":
				key.Group = label.GetValue()
			case "resource":
				key.Resource = label.GetValue()
			case "subresource":
				key.Subresource = label.GetValue()
			case "code":
				key.Code = label.GetValue()
			case "dry_run":
				dryRun = label.GetValue() != ""
			}
		}
		if !dryRun {
			requests[key] += int(metric.GetCounter().GetValue())
		}
	}
	return requests
}

// Since returns the requests that were added since before.
func (r Requests) Since(before Requests) Requests {
	added := Requests{}
	for key, count := range r {
		if n := count - before[key]; n > 0 {
			added[key] = n
		}
	}
	return added
}

// Count returns how many requests match.
func (r Requests) Count(match func(Request) bool) int {
	total := 0
	for key, count := range r {
		if match(key) {
			total += count
		}
	}
	return total
}

// Writes returns how many writes of the subresource succeeded. An empty subresource means the
// object itself.
func (r Requests) Writes(resource, subresource string) int {
	return r.Count(func(key Request) bool {
		return key.Resource == resource && key.Subresource == subresource &&
			key.IsWrite() && strings.HasPrefix(key.Code, "2")
	})
}

// Conflicts returns how many writes of the resource and its subresources failed with 409.
func (r Requests) Conflicts(resource string) int {
	return r.Count(func(key Request) bool {
		return key.Resource == resource && key.IsWrite() && key.Code == "409"
	})
}

// IsWrite reports whether the request changes objects.
func (r Request) IsWrite() bool {
	switch r.Verb {
	case "POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION":
		return true
	default:
		return false
	}
}

// FreeAddress returns a TCP address of the loopback interface that nothing listens on.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(tb, err)
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// Get returns the status code and the body of the answer to a request, or the error.
func Get(ctx context.Context, address, path string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return err.Error()
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", response.StatusCode, body)
}

// Kubeconfig writes the configuration to a temporary kubeconfig file and returns its path.
func Kubeconfig(tb testing.TB, config *rest.Config) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "kubeconfig")
	expect.NoError(tb, kubeconfig.Write(path, config))
	return path
}

// WritesStatusOfInvalidObjects reports whether the API server accepts a change of the status of an
// object whose other fields have become invalid. Kubernetes 1.33 and later do: see docs/install.md.
func (e *Env) WritesStatusOfInvalidObjects(tb testing.TB) bool {
	tb.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(e.Config)
	expect.NoError(tb, err)
	version, err := client.ServerVersion()
	expect.NoError(tb, err)
	minor, err := strconv.Atoi(strings.TrimSuffix(version.Minor, "+"))
	expect.NoError(tb, err)
	return minor > 32
}
