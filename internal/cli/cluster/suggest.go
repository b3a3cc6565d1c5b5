// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// namesTimeout limits the time that an error waits for similar names, and a shell for a completion.
const namesTimeout = 3 * time.Second

// Names returns the names of all objects of the kind in the namespace, for a suggestion or a completion. It is empty if the cluster
// does not answer in 3 seconds, or the user may not list them.
func Names(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, namespace string) []string {
	ctx, cancel := context.WithTimeout(ctx, namesTimeout)
	defer cancel()
	var found []string
	err := Each(ctx, reader, MetadataList(kind), func(object *metav1.PartialObjectMetadata) {
		found = append(found, object.Name)
	}, client.InNamespace(namespace))
	if err != nil {
		return nil
	}
	return found
}

// kindOf returns the kind of the resource, which is one of knownResources.
func kindOf(resource permission.Resource) schema.GroupVersionKind {
	kind, _ := knownResources().KindFor(schema.ParseGroupResource(string(resource)).WithVersion(""))
	return kind
}

// Try lists one object of each resource in the namespace, or in all if it is empty. The snapshot
// that it returns has no objects, only what is missing.
func Try(ctx context.Context, reader client.Reader, namespace string, resources ...permission.Resource) (*Snapshot, error) {
	var m missing
	group, groupContext := errgroup.WithContext(ctx)
	for _, resource := range resources {
		group.Go(func() error {
			err := reader.List(groupContext, MetadataList(kindOf(resource)), client.InNamespace(namespace), client.Limit(1))
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
