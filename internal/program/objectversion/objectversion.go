// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objectversion compares resource versions of objects. If two cannot be compared, neither is older.
package objectversion

import "k8s.io/apimachinery/pkg/util/resourceversion"

// Older reports whether the resource version is older than another one. An empty one cannot be compared.
func Older(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order < 0
}

// Newer returns the newer of two resource versions. An empty one is older than all others.
func Newer(a, b string) string {
	if a == "" || Older(a, b) {
		return b
	}
	return a
}
