// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package api_test tests what Seamark installs in the API server: which PodProbeMarkers are
// accepted and rejected, the cost of the CRDs, and the rights of the service accounts.
package api_test

import (
	"testing"

	"github.com/seamark-dev/seamark/test/integration/env"
)

// server is the API server that the tests of this package share.
var server *env.Env

func TestMain(m *testing.M) { env.Main(m, &server, env.Types()) }
