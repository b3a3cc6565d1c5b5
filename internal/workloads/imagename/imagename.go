// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package imagename compares the names of images.
package imagename

import "strings"

// Canonical returns the image name with the parts that may be omitted: two names that refer to the same image of a registry
// have the same canonical name.
func Canonical(name string) string {
	domain, rest, ok := strings.Cut(name, "/")
	if !ok || !strings.ContainsAny(domain, ".:") && domain != "localhost" {
		domain, rest = "docker.io", name
	}
	if domain == "index.docker.io" {
		domain = "docker.io"
	}
	if domain == "docker.io" && !strings.Contains(rest, "/") {
		rest = "library/" + rest
	}
	if !strings.ContainsAny(rest, ":@") {
		rest += ":latest"
	}
	return domain + "/" + rest
}
