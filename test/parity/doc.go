// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package parity holds tests that run Kubernetes' own probers and Seamark's side by side
// on the same servers, and Kubernetes' own probe worker and Seamark's judge on the same
// outcomes. It has no code but tests; docs/judging.md says what they prove.
package parity
