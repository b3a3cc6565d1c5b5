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

// Parts are the parts of the name of an image.
type Parts struct {
	// Registry is its address.
	Registry string
	// Repository is the path in the registry, without that of Docker's own images, "library/".
	Repository string
	// Tag is "latest" if the name has neither a tag nor a digest.
	Tag string
	// Digest begins with its algorithm, such as "sha256:". It is empty if the name has none.
	Digest string
}

// Split returns the parts of the name of an image. Those of an invalid name are unspecified.
func Split(name string) Parts {
	var parts Parts
	parts.Registry, name, _ = strings.Cut(Canonical(name), "/")
	name, parts.Digest, _ = strings.Cut(name, "@")
	parts.Repository = strings.TrimPrefix(name, "library/")
	if i := strings.LastIndexByte(parts.Repository, ':'); i > strings.LastIndexByte(parts.Repository, '/') {
		parts.Repository, parts.Tag = parts.Repository[:i], parts.Repository[i+1:]
	}
	return parts
}
