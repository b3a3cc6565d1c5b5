// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests that the alerts, the dashboard and the runbooks agree with the
// metrics that the programs export, and with each other. It is a separate module because it
// imports Prometheus' parser of PromQL.
//
// The tests run the programs helm, metricsdocs and promtool, which `make test-monitoring`
// provides.
package monitoring
