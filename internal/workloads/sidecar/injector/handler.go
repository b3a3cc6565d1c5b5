// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package injector answers the API server's admission requests for new pods that a SidecarSet selects.
package injector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
)

// Choice is what a set injects into a pod.
type Choice struct {
	// Revision is what the pod gets, or nil if it gets nothing.
	Revision *inject.Revision
	// Optional is whether the pod may be created without it.
	Optional bool
}

// Sets finds the accepted revisions of sets.
type Sets interface {
	// Choose returns what the set injects into the pod of the request. A set that does not exist
	// injects nothing.
	Choose(ctx context.Context, set string, request admission.Request) (Choice, error)
	// Known returns a revision of a set, or nil if it is not known.
	Known(set, revision string) *inject.Revision
}

// New returns the handler of /inject/SET.
func New(sets Sets) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /inject/{set}", func(w http.ResponseWriter, r *http.Request) {
		set := r.PathValue("set")
		hook := &admission.Webhook{Handler: admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
			return respond(ctx, sets, set, request)
		})}
		hook.ServeHTTP(w, r)
	})
	return mux
}

// respond admits the pod with the containers of the set. A pod that cannot have them is refused, unless
// the set is optional. So is every pod while the revision of the set cannot be read.
func respond(ctx context.Context, sets Sets, set string, request admission.Request) admission.Response {
	choice, err := sets.Choose(ctx, set, request)
	if err != nil {
		return admission.Errored(http.StatusServiceUnavailable, fmt.Errorf("find the revision of SidecarSet %s: %w", set, err))
	}
	if choice.Revision == nil {
		return admission.Allowed("")
	}
	patches, warnings, err := change(request, choice.Revision, sets.Known)
	var refused *inject.RefusedError
	switch {
	case errors.As(err, &refused) && choice.Optional:
		return admission.Allowed("").WithWarnings("not injected: " + refused.Error())
	case errors.As(err, &refused):
		return admission.Denied(refused.Error())
	case err != nil:
		return admission.Errored(http.StatusBadRequest, err)
	}
	log.FromContext(ctx).V(1).Info("Injected", "sidecarSet", set, "revision", choice.Revision.Name, "namespace", request.Namespace)
	return admission.Patched("", patches...).WithWarnings(warnings...)
}

// change returns the injection as a patch of what changes, so that fields of later Kubernetes versions
// remain.
func change(request admission.Request, revision *inject.Revision, known inject.Known) ([]jsonpatch.Operation, []string, error) {
	pod := &corev1.Pod{}
	if err := json.Unmarshal(request.Object.Raw, pod); err != nil {
		return nil, nil, fmt.Errorf("decode pod: %w", err)
	}
	after, warnings, err := inject.Inject(pod, revision, known, metav1.NewTime(time.Now().Truncate(time.Second)))
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // It is the answer.
	}
	// Pods always encode.
	from, _ := json.Marshal(pod)
	to, _ := json.Marshal(after)
	patches, err := jsonpatch.CreatePatch(from, to)
	if err != nil {
		return nil, nil, fmt.Errorf("compare pods: %w", err)
	}
	return patches, warnings, nil
}
