// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring holds alerts, dashboard and runbooks to the metrics that the programs
// have, and to each other. It is a module of its own because it brings Prometheus' parser
// and promtool along.
package monitoring
