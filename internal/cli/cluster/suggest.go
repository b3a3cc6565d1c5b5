// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// NotFound returns an error with the exit code exit.Failed that says that there is no object of
// the kind with the name, and which of the candidates is similar.
func NotFound(kind, name string, candidates []string, where string) error {
	return exit.Failure(fmt.Errorf("%s %q not found%s%s", kind, name, where, text.Suggestion(text.Closest(name, candidates))))
}

func notFound(kind string, names, candidates []string, where string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, NotFound(kind, name, candidates, where))
	}
	return errors.Join(errs...)
}

// names returns the names of all objects of the resource in the namespace. Only metadata is read.
func names(ctx context.Context, reader client.Reader, resource permission.Resource, namespace string) ([]string, error) {
	var found []string
	err := Each(ctx, reader, listOf(resource), func(object *metav1.PartialObjectMetadata) {
		found = append(found, object.Name)
	}, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("list names of %s: %w", resource, err)
	}
	return found, nil
}

// listOf returns an empty list of the metadata of the resource, which is one of knownResources.
func listOf(resource permission.Resource) *metav1.PartialObjectMetadataList {
	kind, _ := knownResources().KindFor(schema.ParseGroupResource(string(resource)).WithVersion(""))
	return MetadataList(kind)
}

// Try lists one object of each resource in the namespace, or in all if it is empty. The snapshot
// that it returns has no objects, only what is missing.
func Try(ctx context.Context, reader client.Reader, namespace string, resources ...permission.Resource) (*Snapshot, error) {
	var m missing
	group, groupContext := errgroup.WithContext(ctx)
	for _, resource := range resources {
		group.Go(func() error {
			err := reader.List(groupContext, listOf(resource), client.InNamespace(namespace), client.Limit(1))
			return m.note(err, "list", resource, namespace)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	s := &Snapshot{}
	s.SetMissing(m.found)
	return s, nil
}
