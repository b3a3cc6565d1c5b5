// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package injector answers the API server's admission requests for new pods that SidecarSets select. It
// injects accepted revisions only, and never waits for a leader.
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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
)

// Choice is what a set injects into a pod.
type Choice struct {
	// Selects is whether the set selects the pod.
	Selects bool
	// Revision is what the pod gets, or nil if it gets nothing.
	Revision *inject.Revision
	// Refused is why no pod can have the set, or empty.
	Refused string
	// Optional is whether the pod may be created without it.
	Optional bool
}

// Sets finds the accepted revisions of sets.
type Sets interface {
	// Choose returns what the set injects into the pod: nothing if it does not exist, is paused or does not
	// select the pod. The request has the UID.
	Choose(ctx context.Context, set string, pod *corev1.Pod, request types.UID) (Choice, error)
	// Bound returns the names of the sets that are bound to the namespace.
	Bound(namespace string) []string
	// Known returns a revision of a set, or nil if it is not known.
	Known(ctx context.Context, set, revision string) *inject.Revision
}

// Result is what became of a request.
type Result string

// The results of requests.
const (
	Injected  Result = "injected"
	Unchanged Result = "unchanged"
	Refused   Result = "refused"
	Failed    Result = "failed"
)

// New returns the handler of /inject/SET and /inject/group/GROUP. It calls done with the result of each request.
func New(sets Sets, done func(Result)) http.Handler {
	serve := func(answer func(context.Context, *http.Request, admission.Request) (admission.Response, Result)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			hook := &admission.Webhook{Handler: admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
				response, result := answer(ctx, r, request)
				done(result)
				return response
			})}
			hook.ServeHTTP(w, r)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /inject/{set}", serve(func(ctx context.Context, r *http.Request, request admission.Request) (admission.Response, Result) {
		return respond(ctx, sets, []string{r.PathValue("set")}, false, request)
	}))
	mux.HandleFunc("POST /inject/group/{group}", serve(func(ctx context.Context, _ *http.Request, request admission.Request) (admission.Response, Result) {
		// The API server sends only pods that a set of the group selects.
		return respond(ctx, sets, sets.Bound(request.Namespace), true, request)
	}))
	return mux
}

// respond admits the pod with the containers of the sets. A pod that cannot have them is refused, unless the
// set is optional. So is every pod while the revision of a set cannot be read, and one that none of the sets
// selects although one must: the cache does not have it yet.
func respond(ctx context.Context, sets Sets, names []string, must bool, request admission.Request) (admission.Response, Result) {
	pod := &corev1.Pod{}
	if err := json.Unmarshal(request.Object.Raw, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode pod: %w", err)), Failed
	}
	pod.Namespace = request.Namespace
	known := func(set, revision string) *inject.Revision { return sets.Known(ctx, set, revision) }
	injected, warnings, selects := pod, []string(nil), false
	for _, name := range names {
		choice, err := sets.Choose(ctx, name, pod, request.UID)
		if err != nil {
			return admission.Errored(http.StatusServiceUnavailable, fmt.Errorf("find the revision of SidecarSet %s: %w", name, err)), Failed
		}
		selects = selects || choice.Selects
		if choice.Revision == nil && choice.Refused == "" {
			continue
		}
		after, more, err := apply(injected, choice, name, known)
		var refused *inject.RefusedError
		switch {
		case errors.As(err, &refused) && choice.Optional:
			warnings = append(warnings, "not injected: "+refused.Error())
			continue
		case err != nil:
			return admission.Denied(err.Error()), Refused
		}
		injected, warnings = after, append(warnings, more...)
		log.FromContext(ctx).V(1).Info("Injected", "sidecarSet", name, "revision", choice.Revision.Name, "namespace", request.Namespace)
	}
	if must && !selects {
		return admission.Errored(http.StatusServiceUnavailable, fmt.Errorf("no SidecarSet of namespace %s that selects the pod is known yet, try again", request.Namespace)), Failed
	}
	patches, err := difference(pod, injected)
	switch {
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err), Failed
	case len(patches) == 0:
		return admission.Allowed("").WithWarnings(warnings...), Unchanged
	default:
		return admission.Patched("", patches...).WithWarnings(warnings...), Injected
	}
}

// apply injects what was chosen. The error is a RefusedError.
func apply(pod *corev1.Pod, choice Choice, set string, known inject.Known) (*corev1.Pod, []string, error) {
	if choice.Refused != "" {
		return nil, nil, &inject.RefusedError{Set: set, Reason: choice.Refused}
	}
	return inject.Inject(pod, choice.Revision, known, metav1.NewTime(time.Now().Truncate(time.Second)))
}

// difference returns the injection as a patch of what changes, so that fields of later Kubernetes versions
// remain.
func difference(before, after *corev1.Pod) ([]jsonpatch.Operation, error) {
	if before == after {
		return nil, nil
	}
	// Pods always encode.
	from, _ := json.Marshal(before)
	to, _ := json.Marshal(after)
	patches, err := jsonpatch.CreatePatch(from, to)
	if err != nil {
		return nil, fmt.Errorf("compare pods: %w", err)
	}
	return patches, nil
}
