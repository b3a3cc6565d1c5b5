// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"k8s.io/client-go/rest"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/remote"
	webui "github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/model"
)

// managerHost is the host of requests to the manager. The tunnel does not resolve it.
const managerHost = "seamark-manager"

// checkTimeout limits the first request to the manager.
const checkTimeout = 15 * time.Second

// relay serves the page of the manager, with the token of the user, which the browser does not have.
type relay struct {
	http.Handler
	tunnel *tunnel
}

// newRelay connects to the manager and checks that it lets the user read the namespace.
func newRelay(ctx context.Context, connection cluster.Connection, seamarkNamespace, version string) (*relay, error) {
	if connection.Config.Impersonate.UserName != "" {
		return nil, errors.New("the manager does not impersonate users (--as)")
	}
	forwards, err := remote.NewClient(connection.Config, version)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	t := &tunnel{remote: forwards, reader: connection.Client, namespace: seamarkNamespace}
	transport, err := rest.HTTPWrappersForConfig(connection.Config, &http.Transport{DialContext: t.dial})
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	if err := check(ctx, transport, connection.Namespace); err != nil {
		t.close()
		return nil, err
	}
	return &relay{Handler: proxy(transport), tunnel: t}, nil
}

// proxy returns a handler that sends requests to the manager. Answers have the headers of the local
// server, except that the manager decides what the browser may store.
func proxy(transport http.RoundTripper) http.Handler {
	reverse := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", managerHost, managerHost
			// Cookies are those of other local servers, and the token comes from the kubeconfig.
			r.Out.Header.Del("Cookie")
			r.Out.Header.Del("Authorization")
		},
		ModifyResponse: func(response *http.Response) error {
			stored := response.Header.Values(cacheControl)
			webui.SetHeaders(response.Header)
			response.Header[cacheControl] = stored
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			webui.SetHeaders(w.Header())
			webui.WriteError(w, &webui.Refusal{Status: http.StatusBadGateway, Message: err.Error()})
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The proxy adds the headers of the answer to those that are set.
		clear(w.Header())
		reverse.ServeHTTP(w, r)
	})
}

const cacheControl = "Cache-Control"

// check reads the session of the user.
func check(ctx context.Context, transport http.RoundTripper, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	address := url.URL{Scheme: "http", Host: managerHost, Path: "/api/v1/session", RawQuery: url.Values{"namespace": {namespace}}.Encode()}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), http.NoBody)
	if err != nil {
		return fmt.Errorf("ask the manager: %w", err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		// The URL in the error would only confuse.
		return fmt.Errorf("ask the manager: %w", errors.Unwrap(err))
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("ask the manager: %w", err)
	}
	if response.StatusCode == http.StatusOK {
		return nil
	}
	var refusal model.Error
	if json.Unmarshal(body, &refusal) != nil || refusal.Error == "" {
		refusal.Error = response.Status
	}
	return fmt.Errorf("the manager refuses: %s", refusal.Error)
}

// maxAnswer is the maximum size of the answer to the first request.
const maxAnswer = 64 << 10
