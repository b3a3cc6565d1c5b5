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

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
)

// Choice is what a set injects into a pod.
type Choice struct {
	// Set is the name of the set.
	Set string
	// Selects is whether the set selects the pod.
	Selects bool
	// Revision is what the pod gets, or nil if it gets nothing.
	Revision *inject.Revision
	// Refused is why no pod can have the set, or empty.
	Refused string
	// Optional is whether the pod may be created without it.
	Optional bool
}

// decides reports whether the set injects into the pod, or refuses it.
func (c Choice) decides() bool { return c.Revision != nil || c.Refused != "" }

// Sets finds the accepted revisions of sets.
type Sets interface {
	// Choose returns what the set injects into the pod: nothing if it does not exist, is paused or does not
	// select the pod. The request has the UID.
	Choose(ctx context.Context, set string, pod *corev1.Pod, request types.UID) (Choice, error)
	// ChooseBound returns what the sets that are bound to the namespace of the pod, and select it, inject. They are at
	// least as new as the resource version, if it is not empty.
	ChooseBound(ctx context.Context, pod *corev1.Pod, request types.UID, version string) ([]Choice, error)
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

// New returns the handler of /inject/SET and /inject/group/GROUP. It calls done with the result of each request. If
// the injector fails, the answer is no admission response: so the failure policy of the entry decides.
func New(sets Sets, done func(Result)) http.Handler {
	serve := func(choose func(*http.Request) chooser) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			out := &answer{ResponseWriter: w, failure: errRequest}
			hook := &admission.Webhook{Handler: admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
				response, result, err := respond(ctx, sets, choose(r), request)
				done(result)
				out.failure = err
				return response
			}), RecoverPanic: new(false)} // The server ends the connection, which is no response either.
			hook.ServeHTTP(out, r)
			if out.failure != nil {
				http.Error(w, out.failure.Error(), http.StatusInternalServerError)
			}
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /inject/{set}", serve(func(r *http.Request) chooser {
		return func(ctx context.Context, pod *corev1.Pod, request types.UID) ([]Choice, error) {
			choice, err := sets.Choose(ctx, r.PathValue("set"), pod, request)
			return []Choice{choice}, err
		}
	}))
	mux.HandleFunc("POST /inject/group/{group}", serve(func(r *http.Request) chooser {
		return func(ctx context.Context, pod *corev1.Pod, request types.UID) ([]Choice, error) {
			return sets.ChooseBound(ctx, pod, request, entries.GroupVersion(r.PathValue("group")))
		}
	}))
	return mux
}

// errRequest means that the request was not read as a whole, or is not understood.
var errRequest = errors.New("the request is not an admission review of at most 4 MiB")

// chooser returns what a pod gets.
type chooser func(ctx context.Context, pod *corev1.Pod, request types.UID) ([]Choice, error)

// answer does not write the response of a request that failed.
type answer struct {
	http.ResponseWriter
	failure error
}

// Write implements io.Writer.
func (a *answer) Write(response []byte) (int, error) {
	if a.failure != nil {
		return len(response), nil //nolint:nilerr // The failure is the answer, not that of the writer.
	}
	return a.ResponseWriter.Write(response) //nolint:wrapcheck // It is the same writer.
}

// respond admits the pod with the containers of the sets. A pod that cannot have them is refused, unless the
// set is optional. The error says why it is not known what the pod gets.
func respond(ctx context.Context, sets Sets, choose chooser, request admission.Request) (admission.Response, Result, error) {
	pod := &corev1.Pod{}
	if err := json.Unmarshal(request.Object.Raw, pod); err != nil {
		return admission.Response{}, Failed, fmt.Errorf("decode pod: %w", err)
	}
	pod.Namespace = request.Namespace
	choices, err := choose(ctx, pod, request.UID)
	if err != nil {
		return admission.Response{}, Failed, err
	}
	lookup := func(set, revision string) *inject.Revision { return sets.Known(ctx, set, revision) }
	injected, warnings := pod, []string(nil)
	for _, choice := range choices {
		if !choice.decides() {
			continue
		}
		after, more, err := apply(injected, choice, lookup)
		var refused *inject.RefusedError
		switch {
		case errors.As(err, &refused) && choice.Optional:
			warnings = append(warnings, "not injected: "+refused.Error())
			continue
		case errors.As(err, &refused):
			return admission.Denied(err.Error()), Refused, nil
		case err != nil:
			return admission.Response{}, Failed, fmt.Errorf("inject SidecarSet %s: %w", choice.Set, err)
		}
		injected, warnings = after, append(warnings, more...)
		log.FromContext(ctx).V(1).Info("Injected", "sidecarSet", choice.Set, "revision", choice.Revision.Name, "namespace", request.Namespace)
	}
	patch, err := difference(pod, injected)
	response := admission.Allowed("").WithWarnings(warnings...)
	switch {
	case err != nil:
		return admission.Response{}, Failed, err
	case len(patch) == 0:
		return response, Unchanged, nil
	}
	// Parts of pods always encode.
	response.Patch, _ = json.Marshal(patch)
	response.PatchType = new(admissionv1.PatchTypeJSONPatch)
	return response, Injected, nil
}

// apply injects what was chosen. The error is a RefusedError if the pod cannot have it.
func apply(pod *corev1.Pod, choice Choice, known inject.Known) (*corev1.Pod, []string, error) {
	if choice.Refused != "" {
		return nil, nil, &inject.RefusedError{Set: choice.Set, Reason: choice.Refused}
	}
	return inject.Inject(pod, choice.Revision, known, metav1.NewTime(time.Now().Truncate(time.Second)))
}
