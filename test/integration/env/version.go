// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"

	"github.com/seamark-dev/seamark/test/expect"
)

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
