// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/kubeconfig"
)

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
