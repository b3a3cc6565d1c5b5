// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package api_test holds the API server to what Seamark installs in it: which
// PodProbeMarkers it takes and refuses, what the CRDs cost it, and what the service
// accounts may do.
package api_test

import (
	"testing"

	"github.com/seamark-dev/seamark/test/integration/env"
)

// server is the API server that the tests of this package share.
var server *env.Env

func TestMain(m *testing.M) {
	env.Main(m, func(e *env.Env) { server = e })
}
