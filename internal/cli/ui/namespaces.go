// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/web/model"
)

const (
	// maxListed is the maximum number of namespaces that are listed, and maxTried of those that are tried: it is two requests
	// for each.
	maxListed, maxTried = 500, 100
	// maxShown is the maximum number of namespaces that are watched for one page: it is up to six watches for each.
	maxShown = 20
	// maxTries is the number of namespaces that are tried at the same time.
	maxTries = 8
	// remembered is how long the answer is valid.
	remembered = 20 * time.Second
)

// visible finds out which namespaces the user may see.
type visible struct {
	reader client.Reader
	// chosen are those of --namespace if there are several. Then no others are shown together.
	chosen []string
	// own is the namespace of the context, which is tried if namespaces cannot be listed.
	own string
	now func() time.Time

	mu    sync.Mutex
	read  time.Time
	found model.Namespaces
}

// namespacesOf returns the namespaces of the flag, which are separated by commas.
func namespacesOf(flag string) ([]string, error) {
	var names []string
	for name := range strings.SplitSeq(flag, ",") {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return nil, fmt.Errorf("--namespace: %q is invalid: %q must be the name of a namespace: %s", flag, name, problems[0])
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > maxShown {
		return nil, fmt.Errorf("--namespace: %q is invalid: must be at most %d namespaces", flag, maxShown)
	}
	return names, nil
}

// get returns the namespaces, as they were known a moment ago. The error has the code exit.Access if the cluster cannot be
// reached.
func (v *visible) get(ctx context.Context) (model.Namespaces, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.read.IsZero() && v.now().Sub(v.read) < remembered {
		return v.found, nil
	}
	found, err := v.find(ctx)
	if err == nil {
		v.found, v.read = found, v.now()
	}
	return found, err
}

// find lists the names of at most maxListed namespaces. If the user may not read all namespaces, it tries which ones the user may
// read.
func (v *visible) find(ctx context.Context) (model.Namespaces, error) {
	all, err := cluster.Try(ctx, v.reader, "", permission.Required()...)
	if err != nil {
		return model.Namespaces{}, err
	}
	whole := len(all.Missing) == 0
	names := v.chosen
	if len(names) == 0 {
		if names, err = v.list(ctx); err != nil {
			return model.Namespaces{}, err
		}
	}
	if whole && len(v.chosen) == 0 {
		return model.Namespaces{Whole: true, Names: names}, nil
	}
	if !whole {
		names, err = v.try(ctx, v.tried(names))
	}
	return model.Namespaces{Names: names, Shown: names[:min(len(names), maxShown)]}, err
}

// list returns the names of namespaces in order, or the one of the context if they cannot be listed.
func (v *visible) list(ctx context.Context) ([]string, error) {
	list := cluster.MetadataList(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := v.reader.List(ctx, list, client.Limit(maxListed))
	switch missing, failure := cluster.MissingOf(err, "list", "namespaces", ""); {
	case failure != nil:
		return nil, failure
	case missing != nil:
		return v.tried(nil), nil
	}
	names := []string{}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// tried returns which of the namespaces are tried: the first ones, and that of the context.
func (v *visible) tried(names []string) []string {
	first := slices.Clone(names[:min(len(names), maxTried)])
	if v.own != "" && len(v.chosen) == 0 && !slices.Contains(first, v.own) {
		first = append(first, v.own)
	}
	slices.Sort(first)
	return first
}

// try returns those of the namespaces whose pods and markers the user may list.
func (v *visible) try(ctx context.Context, names []string) ([]string, error) {
	readable := make([]bool, len(names))
	group, groupContext := errgroup.WithContext(ctx)
	group.SetLimit(maxTries)
	for i, name := range names {
		group.Go(func() error {
			tried, err := cluster.Try(groupContext, v.reader, name, permission.Required()...)
			readable[i] = err == nil && len(tried.Missing) == 0
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("find the namespaces that you may read: %w", err)
	}
	found := []string{}
	for i, name := range names {
		if readable[i] {
			found = append(found, name)
		}
	}
	return found, nil
}

// scopes returns the namespaces to watch for a scope: an empty one for all.
func (v *visible) scopes(ctx context.Context, namespace string) ([]string, error) {
	if namespace != "" {
		return []string{namespace}, v.require(ctx, namespace)
	}
	found, err := v.get(ctx)
	switch {
	case err != nil:
		return nil, err
	case found.Whole:
		return []string{""}, nil
	case len(found.Shown) > 0:
		return found.Shown, nil
	}
	// The error names what is missing.
	return []string{""}, v.require(ctx, "")
}

// require returns an error with the code exit.Access if the user may not read pods and markers of the namespace.
func (v *visible) require(ctx context.Context, namespace string) error {
	required, err := cluster.Try(ctx, v.reader, namespace, permission.Required()...)
	if err != nil {
		return err
	}
	return required.Require(permission.Required()...)
}
