// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

func TestSelectorIsImmutable(t *testing.T) {
	t.Parallel()
	stored := marker(t, server.Namespace(t))
	expect.NoError(t, server.Client.Create(t.Context(), stored))
	for name, change := range map[string]edit{
		"label added":         {"spec.selector.matchLabels.more", "a"},
		"label changed":       {"spec.selector.matchLabels.app", "other"},
		"labels removed":      {"spec.selector.matchLabels", remove{}},
		"operator changed":    {"spec.selector.matchExpressions[0].operator", "NotIn"},
		"values in new order": {"spec.selector.matchExpressions[0].values", []any{"back", "front"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := causes(update(t, stored, change))
			expect.NoError(t, err)
			const words = "field is immutable: delete the marker and create a new one"
			if len(got) != 1 || got[0].Field != "spec.selector" || !strings.Contains(got[0].Message, words) {
				t.Errorf("causes %v, want %q for spec.selector", got, words)
			}
		})
	}
}

func TestOtherFieldsCanChange(t *testing.T) {
	t.Parallel()
	stored := marker(t, server.Namespace(t))
	expect.NoError(t, server.Client.Create(t.Context(), stored))
	for name, change := range map[string]edit{
		"period":         {"spec.probes[0].probe.periodSeconds", int64(3)},
		"handler":        {"spec.probes[0].probe", map[string]any{"tcpSocket": map[string]any{"port": int64(1)}}},
		"name":           {"spec.probes[0].name", "other"},
		"container":      {"spec.probes[0].containerName", "other"},
		"condition type": {"spec.probes[0].podConditionType", "game.io/other"},
		"policy":         {"spec.probes[0].markerPolicy", remove{}},
		"probes":         {"spec.probes", manyProbes(2)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect.Success(t, update(t, stored, change))
		})
	}
}

// update updates the stored object in a dry run.
func update(t *testing.T, stored *unstructured.Unstructured, edits ...edit) error {
	t.Helper()
	changed := stored.DeepCopy()
	for _, e := range edits {
		expect.NoError(t, e.apply(changed.Object))
	}
	return server.Client.Update(t.Context(), changed, client.DryRunAll)
}

// TestInvalidMarkersAfterCRDUpdate covers markers that OpenKruise's CRDs accepted and Seamark's
// reject. Seamark must be able to set its finalizer and status, and their owners must be able to
// repair one field after the other.
func TestInvalidMarkersAfterCRDUpdate(t *testing.T) {
	t.Parallel()
	old := env.Start(t, env.UpstreamCRDs())
	namespace := old.Namespace(t)
	bad := marker(t, namespace,
		edit{"spec.selector", map[string]any{"matchLabels": map[string]any{"app": "-"}}},
		edit{"spec.probes[0].name", "Ready"},
		edit{"spec.probes[0].markerPolicy[1].state", "Succeeded"},
		edit{"spec.probes[1].probe.httpGet.host", "example.com"},
		edit{"spec.probes[2].podConditionType", "Initialized"},
		edit{"spec.probes[3].probe.exec", map[string]any{"command": []any{"true"}}},
	)
	expect.NoError(t, old.Client.Create(t.Context(), bad))
	replaceCRDs(t, old)

	patch := func(text string) error {
		return old.Client.Patch(t.Context(), bad.DeepCopy(), env.MergePatch(text))
	}
	if err := patch(`{"metadata": {"finalizers": ["kruise.io/node-pod-probe-cleanup"], "labels": {"team": "a"}}}`); err != nil {
		t.Error("add a finalizer:", err)
	}
	status := env.MergePatch(`{"status": {"observedGeneration": 1, "matchedPods": 2}}`)
	err := old.Client.Status().Patch(t.Context(), bad.DeepCopy(), status)
	if written := err == nil; written != old.WritesStatusOfInvalidObjects(t) {
		t.Error("write the status:", err)
	}

	jsonPatch := func(text string) error {
		return old.Client.Patch(t.Context(), bad.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(text)))
	}
	if err := jsonPatch(`[{"op": "replace", "path": "/spec/probes/1/probe/httpGet/path", "value": "/other"}]`); err != nil {
		t.Error("change a field next to an invalid one:", err)
	}
	if err := jsonPatch(`[{"op": "replace", "path": "/spec/probes/1/probe/httpGet/host", "value": "example.org"}]`); !apierrors.IsInvalid(err) {
		t.Errorf("change an invalid field to another invalid value: %v, want Invalid", err)
	}
	if err := jsonPatch(`[{"op": "remove", "path": "/spec/probes/1/probe/httpGet/host"}]`); err != nil {
		t.Error("repair an invalid field:", err)
	}
	if err := patch(`{"metadata": {"finalizers": null}}`); err != nil {
		t.Error("remove the finalizer:", err)
	}
	if err := old.Client.Delete(t.Context(), bad.DeepCopy()); err != nil {
		t.Error("delete the marker:", err)
	}
}

// replaceCRDs replaces the installed CRDs with Seamark's and waits until they are in effect.
func replaceCRDs(t *testing.T, e *env.Env) {
	t.Helper()
	crds, err := env.ReadCRDs("")
	expect.NoError(t, err)
	for _, crd := range crds {
		installed := crd.DeepCopy()
		expect.NoError(t, e.Client.Get(t.Context(), client.ObjectKeyFromObject(crd), installed))
		installed.Spec = crd.Spec
		expect.NoError(t, e.Client.Update(t.Context(), installed))
	}
	bad := marker(t, e.Namespace(t), edit{"spec.probes[0].name", "Ready"})
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) {
			return apierrors.IsInvalid(e.Client.Create(ctx, bad.DeepCopy(), client.DryRunAll)), nil
		})
	expect.NoErrorf(t, err, "wait until the new rules are in effect")
}
