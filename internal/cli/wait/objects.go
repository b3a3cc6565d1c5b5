// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/live"
	"github.com/seamark-dev/seamark/internal/cli/target"
	"github.com/seamark-dev/seamark/internal/cli/until"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// isOfObjects reports whether the arguments and the flags name objects that are not pods.
func (o *options) isOfObjects(args []string) bool {
	if len(o.Files.Filenames) > 0 {
		return true
	}
	isPod := func(arg string) bool {
		kind, _, found := strings.Cut(arg, "/")
		return !found || kind == "pod" || kind == "pods"
	}
	// A pod may have the name of a kind, but no comma in it.
	isKind := o.selects() || len(args) > 0 && target.NamesKind(args[0]) && (len(args) > 1 || strings.Contains(args[0], ","))
	return slices.ContainsFunc(args, func(arg string) bool { return !isPod(arg) }) || len(args) > 0 && isKind
}

// runObjects waits until objects that are not pods meet the expressions. Objects of other groups are passed to kubectl.
func (o *options) runObjects(cmd *cobra.Command, args []string) error {
	if err := o.validate(); err != nil {
		return err
	}
	o.Check = o.parseRequirements
	ctx := cmd.Context()
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Timeout)
		defer cancel()
	}
	targets, err := o.Targets(ctx, args)
	switch {
	case errors.Is(err, target.ErrOthers) && len(o.For) > 1:
		return fmt.Errorf("--for: %q is invalid: must be one for objects of other groups than apps.kruise.io", o.For[1])
	case errors.Is(err, target.ErrOthers) && !isOfKubectl(o.For[0], "condition"):
		_, err := until.ParseObject(o.For[0])
		return fmt.Errorf("--for: %w, because %q names no pods", err, strings.Join(args, " "))
	case errors.Is(err, target.ErrOthers):
		return o.PassOn(cmd, args)
	case errors.Is(err, target.ErrNone) && !slices.ContainsFunc(o.For, func(text string) bool { return text != "delete" }):
		return nil // As kubectl.
	case err != nil:
		return err
	}
	changes := live.NewSignal()
	objects, resources := watchedObjects(changes, targets)
	return o.wait(ctx, targets[0].Connection, changes, resources, func() (results []until.Result, err error) {
		changes.Lock()
		defer changes.Unlock()
		for _, object := range objects {
			of, err := object.results(ctx, o.requirements)
			if err != nil {
				return nil, err
			}
			results = append(results, of...)
		}
		return results, nil
	})
}

// parseRequirements parses the expressions for objects.
func (o *options) parseRequirements() error {
	if o.Any || o.Cluster.AllNamespaces {
		return errors.New("--any and --all-namespaces: must be used only with pods")
	}
	for _, text := range o.For {
		e, err := until.ParseObject(text)
		if err != nil {
			return fmt.Errorf("--for: %w", err)
		}
		o.requirements = append(o.requirements, e)
	}
	return nil
}

// watchedObject is an object that expressions refer to.
type watchedObject struct {
	*target.Target
	all *live.Collection[*unstructured.Unstructured]
	// first is the UID of the object that existed first, empty if there was none.
	first types.UID
}

// watchedObjects returns the objects, and what is listed and watched: one object, or all of its kind and namespace. What was listed to
// find them is not listed again.
func watchedObjects(changes *live.Signal, targets []*target.Target) (objects []*watchedObject, resources []live.Resource) {
	names := map[types.NamespacedName][]string{}
	groupOf := func(t *target.Target) types.NamespacedName {
		return types.NamespacedName{Namespace: t.Namespace, Name: t.Kind.Kind}
	}
	for _, t := range targets {
		names[groupOf(t)] = append(names[groupOf(t)], t.Name)
	}
	groups := map[types.NamespacedName]*live.Collection[*unstructured.Unstructured]{}
	for _, t := range targets {
		group := groupOf(t)
		if groups[group] == nil {
			named := func(object *unstructured.Unstructured) bool { return slices.Contains(names[group], object.GetName()) }
			groups[group] = live.NewCollection(changes, named, func(object *unstructured.Unstructured) *unstructured.Unstructured {
				object.SetManagedFields(nil)
				return object
			}, changes.Touch)
			var which []client.ListOption
			if len(names[group]) == 1 {
				which = append(which, client.MatchingFields{metav1.ObjectNameField: t.Name})
			}
			resource := live.ResourceOf(permission.Resource(t.Kind.Definition()), t.Namespace, target.NewList(t.Kind), groups[group], which...)
			if t.Listed != nil {
				resource = resource.From(t.Listed)
			}
			resources = append(resources, resource)
		}
		objects = append(objects, &watchedObject{Target: t, all: groups[group]})
	}
	return objects, resources
}

// results evaluates the expressions. The error means that they cannot be met any more.
func (w *watchedObject) results(ctx context.Context, requirements []*until.ObjectExpression) (results []until.Result, err error) {
	object := w.all.Items[w.Key()]
	requires := func(exists bool) bool {
		return slices.ContainsFunc(requirements, func(e *until.ObjectExpression) bool { return e.Exists() != nil && *e.Exists() == exists })
	}
	if object != nil && w.first == "" {
		w.first = object.GetUID()
	}
	if object != nil && object.GetUID() != w.first && !requires(true) {
		object = nil // It was deleted. Another one has its name.
	}
	switch {
	case object != nil || requires(true) || requires(false):
	case w.first == "":
		return nil, w.NotFound(ctx)
	default:
		return nil, exit.Failure(fmt.Errorf("%s has been deleted", w))
	}
	for _, e := range requirements {
		result, stalled := e.Result(object)
		if stalled != "" {
			return nil, exit.Failure(fmt.Errorf("%s is stalled: %s", w, text.Line(stalled)))
		}
		result.Expression = w.String() + " " + result.Expression
		results = append(results, result)
	}
	return results, nil
}
