// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package target has the objects of apps.kruise.io that commands such as `seamark rollout` are about: how arguments and flags
// name them, how they are read and patched, and what the errors say. Objects of other groups are passed to kubectl.
package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// Target is an object that a command is about.
type Target struct {
	cluster.Connection
	Kind *kinds.Kind
	// Namespace is empty for objects that belong to none.
	Namespace, Name string
	// Listed is the list of objects of the kind in which the object was found, nil if it was named. It is complete.
	Listed *unstructured.UnstructuredList
}

// New returns the object of the kind with the name. The namespace is ignored if objects of the kind belong to none.
func New(connection cluster.Connection, kind *kinds.Kind, namespace, name string) *Target {
	if kind.ClusterScoped {
		namespace = ""
	}
	return &Target{Connection: connection, Kind: kind, Namespace: namespace, Name: name}
}

// NewList returns an empty list of the kind.
func NewList(kind *kinds.Kind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

// String returns the object as kubectl names it in its output.
func (t *Target) String() string {
	return strings.ToLower(t.Kind.Kind) + "." + t.Kind.Group + "/" + t.Name
}

// Key returns the namespace and the name.
func (t *Target) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: t.Namespace, Name: t.Name}
}

// Read reads the object into one of its kind, or an unstructured one.
func (t *Target) Read(ctx context.Context, into client.Object) error {
	return t.Failed(ctx, "get", t.Client.Get(ctx, t.Key(), into))
}

// Failed returns the error of a request about the object with its exit code.
func (t *Target) Failed(ctx context.Context, verb string, err error) error {
	if apierrors.IsNotFound(err) && !cluster.IsNotInstalled(err) {
		return t.NotFound(ctx)
	}
	return t.FailedTo(verb, permission.Resource(t.Kind.Definition()), err)
}

// NotFound returns the error that the object does not exist. It names a similar one.
func (t *Target) NotFound(ctx context.Context) error {
	where := ""
	if t.Namespace != "" {
		where = cluster.Where(t.Namespace)
	}
	hint := ""
	if t.Client.Scheme().Recognizes(appsv1.SchemeGroupVersion.WithKind(t.Kind.Kind)) {
		hint = fmt.Sprintf("; the one of Kubernetes is %s.apps/%s", t.Kind.Resource, t.Name)
	}
	similar := text.Closest(t.Name, cluster.Names(ctx, t.Client, t.Kind.GroupVersionKind, t.Namespace))
	if similar != "" {
		similar = strings.ToLower(t.Kind.Kind) + "/" + similar
	}
	return exit.Failure(fmt.Errorf("%s not found%s%s%s", t, where, hint, text.Suggestion(similar)))
}

// FailedTo returns the error of a request about a resource in the namespace of the object with its exit code.
func (t *Target) FailedTo(verb string, resource permission.Resource, err error) error {
	missing, failure := cluster.MissingOf(err, verb, resource, t.Namespace)
	if missing != nil {
		return exit.NoAccess(fmt.Errorf("%s; %s", missing, missing.Fix()))
	}
	return failure
}

// Patch patches the object on the API server, and changes it to what the API server returns. A JSON patch of which a test fails is
// an error that asks to run the command again.
func (t *Target) Patch(ctx context.Context, object client.Object, kind types.PatchType, content any, opts ...client.PatchOption) error {
	data, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode the patch of %s: %w", t, err)
	}
	err = t.Client.Patch(ctx, object, client.RawPatch(kind, data), opts...)
	if kind == types.JSONPatchType && apierrors.IsInvalid(err) && !hasCauses(err) {
		return exit.Failure(fmt.Errorf("%s has changed since it was read: run the command again", t))
	}
	return t.Failed(ctx, "patch", err)
}

// hasCauses reports whether the API server has named the fields that are invalid. It names none if a test of a JSON patch fails.
func hasCauses(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && len(details.Causes) > 0
}

// DryRun is --dry-run: none, client (only print what would change) or server (send the request, and do not store it).
type DryRun string

// AddTo defines the flag in the command.
func (d *DryRun) AddTo(command *cobra.Command) {
	const usage = "none, client (only print what would change) or server (send the request, and do not store it)"
	command.Flags().StringVar((*string)(d), "dry-run", "none", usage)
}

// Validate returns an error if the value is invalid.
func (d DryRun) Validate() error {
	if d != "none" && d != "client" && d != "server" {
		return fmt.Errorf("--dry-run: %q is invalid: must be none, client or server", d)
	}
	return nil
}

// Client reports whether no request may be sent.
func (d DryRun) Client() bool { return d == "client" }

// Options returns the options of requests.
func (d DryRun) Options() []client.PatchOption {
	if d == "server" {
		return []client.PatchOption{client.DryRunAll}
	}
	return nil
}

// Suffix returns the end of the line that says what was done.
func (d DryRun) Suffix() string {
	switch d {
	case "client":
		return " (dry run)"
	case "server":
		return " (server dry run)"
	}
	return ""
}
