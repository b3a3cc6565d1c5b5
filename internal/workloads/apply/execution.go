// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/program/apierror"
	"github.com/seamark-dev/seamark/internal/program/objectversion"
	"github.com/seamark-dev/seamark/internal/workloads/grants"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// The kinds of written objects, in messages and metrics.
const (
	podKind      = "pod"
	claimKind    = "persistentvolumeclaim"
	revisionKind = "controllerrevision"
	pullKind     = "imagepulljob"
	// namespaceKind is what a step cannot write to as a whole.
	namespaceKind = "namespace"
)

type execution struct {
	*Executor
	set      Set
	deadline time.Time
	// current is the result of the only check of the step whether the set is as the planner saw it.
	current func() error

	mu      sync.Mutex
	outcome Outcome
	// missing is what later phases must not depend on.
	missing missing
}

type request struct {
	kind, operation, name, reason string
	// namespace is that of the pod. It counts if the set is cluster-scoped.
	namespace string
	// version is the resource version after the write, if it is known.
	version string
	// deleted is the pod that the write deleted, and patched the one that it patched.
	deleted, patched types.UID
	// update marks patches of pods and expansions of claims.
	update bool
	// last marks the last request of an action on a pod.
	last bool
}

// note records what became of a write.
func (x *execution) note(w request, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if w.version != "" {
		switch w.kind {
		case podKind:
			x.outcome.Pods = objectversion.Newer(x.outcome.Pods, w.version)
		case claimKind:
			x.outcome.Claims = objectversion.Newer(x.outcome.Claims, w.version)
		case revisionKind:
			x.outcome.Revisions = objectversion.Newer(x.outcome.Revisions, w.version)
		}
	}
	switch {
	case err == nil:
		x.outcome.Writes++
		if w.last {
			x.outcome.Written = append(x.outcome.Written, w.name)
		}
		if w.deleted != "" {
			x.outcome.Deleted = append(x.outcome.Deleted, w.deleted)
		}
		x.options.Wrote(w.kind, w.operation, w.reason)
	case isOutdated(err) || w.operation != "create" && apierrors.IsNotFound(err):
		x.outcome.Outdated = true
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		x.outcome.Ended = true
	case isRefused(err) && !x.passes(w, err):
		x.options.Failed(x.set.Kind)
		x.outcome.Failures = append(x.outcome.Failures, planning.Failure{
			Update: w.update, Pull: w.kind == pullKind, Object: w.kind + " " + w.name, Pod: w.patched, Err: err,
		})
	default:
		x.options.Failed(x.set.Kind)
		x.outcome.Errs = append(x.outcome.Errs, fmt.Errorf("%s %s %s: %w", w.operation, w.kind, w.name, err))
	}
}

// granted reports whether the program may write in the namespace. If not, it notes why the write failed.
func (x *execution) granted(namespace string, w request) bool {
	if x.options.Grants == nil {
		return true
	}
	err := x.options.Grants.Check(namespace)
	if err != nil {
		x.note(w, err)
	}
	return err == nil
}

// passes reports whether a write will be permitted soon: the namespace of the set, or of the object if the set has none, has
// just got its first set, or API servers do not know yet that the program may write there.
func (x *execution) passes(w request, err error) bool {
	var missing *grants.MissingError
	if errors.As(err, &missing) {
		return !missing.Late
	}
	return apierror.IsNotAuthorized(err) && x.options.Grants != nil && x.options.Grants.Spreads(cmp.Or(x.set.Object.GetNamespace(), w.namespace))
}

// taken records that a pod of others has the name.
func (x *execution) taken(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.outcome.Taken = append(x.outcome.Taken, name)
}

// over reports whether no more requests may be started.
func (x *execution) over(ctx context.Context) bool {
	if ctx.Err() == nil && x.options.Now().Before(x.deadline) {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.outcome.Incomplete = true
	return true
}

// forEach calls do for 0 to n-1, in parallel within the bound.
func (x *execution) forEach(ctx context.Context, n int, do func(ctx context.Context, i int)) {
	var running sync.WaitGroup
	permits := make(chan struct{}, x.options.Parallel)
	for i := range n {
		permits <- struct{}{}
		if x.over(ctx) {
			break
		}
		running.Go(func() {
			defer func() { <-permits }()
			limited, cancel := context.WithTimeout(ctx, x.options.Timeout)
			defer cancel()
			do(limited, i)
		})
	}
	running.Wait()
}

// slowly calls do for 0 to n-1: first once, and after each success for one more at a time, within
// the bound. After an error, it starts no more calls: a quota that is used up costs few requests.
func (x *execution) slowly(ctx context.Context, n int, do func(ctx context.Context, i int) error) {
	results := make(chan error)
	next, running, most, stopped := 0, 0, 1, false
	for {
		for !stopped && next < n && running < most {
			if stopped = x.over(ctx); stopped {
				break
			}
			i := next
			next, running = next+1, running+1
			go func() {
				limited, cancel := context.WithTimeout(ctx, x.options.Timeout)
				defer cancel()
				results <- do(limited, i)
			}()
		}
		if running == 0 {
			return
		}
		err := <-results
		running--
		most = min(most+1, x.options.Parallel)
		stopped = stopped || err != nil
	}
}

// owns reports whether the set is the controller of the object.
func (x *execution) owns(object metav1.Object) bool {
	key := owner.Of(x.set.GroupVersionKind, x.set.Object)
	if key.Namespace == "" {
		key = key.In(x.set.Namespace)
	}
	return key.Controls(object)
}

// create creates an object of the set.
func (x *execution) create(ctx context.Context, kind string, object client.Object) error {
	if err := x.set.permits(kind, false, object); err != nil {
		return err
	}
	return x.options.Client.Create(ctx, object) //nolint:wrapcheck // note describes it.
}

// remove deletes an object of the set.
func (x *execution) remove(ctx context.Context, kind string, object client.Object, conditions ...client.DeleteOption) error {
	if err := x.set.permits(kind, false, object); err != nil {
		return err
	}
	return x.options.Client.Delete(ctx, object, conditions...) //nolint:wrapcheck // note describes it.
}

func nameOf(object metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}
}

func unchanged(object metav1.Object) client.Preconditions {
	uid, version := object.GetUID(), object.GetResourceVersion()
	if version == "" {
		return client.Preconditions{UID: &uid}
	}
	return client.Preconditions{UID: &uid, ResourceVersion: &version}
}

func exists(err error) bool { return apierrors.IsAlreadyExists(err) }

// isOutdated reports whether the object has changed since it was read, or is another one.
func isOutdated(err error) bool {
	return errors.Is(err, errOutdated) || apierrors.IsConflict(err) || apierror.IsOtherUID(err)
}

// isRefused reports whether the API server refused the write, so that it is refused again until the
// set, a quota or a policy changes. An error of an admission webhook counts, because users must see
// it, and so does an object that is not the set's to write.
func isRefused(err error) bool {
	foreign, missing := (*owner.ForeignError)(nil), (*grants.MissingError)(nil)
	if errors.As(err, &foreign) || errors.As(err, &missing) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code <= http.StatusInternalServerError &&
		code != http.StatusTooManyRequests && code != http.StatusUnauthorized
}
