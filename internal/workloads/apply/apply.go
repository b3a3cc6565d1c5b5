// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply executes the steps of workloads: it writes their pods, claims and revisions. Each write
// requires that the object is as the planner saw it.
package apply

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/objectversion"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// serial is the annotation that distinguishes the pods of a set whose names may repeat.
const serial = v1alpha1.PodSerialAnnotationKey

// errOutdated means that an object is not as the planner saw it.
var errOutdated = errors.New("object has changed since it was read")

// Executor executes the steps that planners of workloads decide. It writes the pods, claims and
// revisions of a set. It is safe for concurrent use.
type Executor struct {
	options Options
}

// Options configure an Executor. All fields but Grants are required.
type Options struct {
	// Client writes. Its reads are not used.
	Client client.Client
	// DeletePod deletes a pod. The client of controller-runtime decodes the response, and converts it to
	// JSON and back: a deletion takes 0.4 ms of processor time with it, and 0.13 ms without.
	DeletePod func(ctx context.Context, pod types.NamespacedName, conditions metav1.Preconditions) error
	// Grants says in which namespaces the program may write. If it is nil, it may write in all.
	Grants Grants
	// Live reads from the API server, without a cache.
	Live client.Reader
	// Parallel is the maximum number of requests of one step at a time.
	Parallel int
	// Budget is the time after which a step starts no more requests. The next step continues, so
	// that a large step does not delay the reaction to what happens meanwhile.
	Budget time.Duration
	// Timeout limits each request.
	Timeout time.Duration
	// Now is the clock.
	Now func() time.Time
	// Wrote is called after each successful write to an object, with what was written and why. It
	// must be safe for concurrent use.
	Wrote func(kind, operation, reason string)
	// Failed is called after each write for a set of the kind that the API server refused or did not answer, not after a
	// conflict. It must be safe for concurrent use.
	Failed func(kind string)
}

// Grants says in which namespaces the program may write.
type Grants interface {
	// Check returns an error, such as a grants.MissingError, if it may not write in the namespace.
	Check(namespace string) error
	// Spreads reports whether API servers may not know yet that it may.
	Spreads(namespace string) bool
}

// New returns an Executor.
func New(options Options) *Executor { return &Executor{options: options} }

// Set is the set that a step belongs to.
type Set struct {
	// GroupVersionKind is the kind of the set, and Object the set.
	schema.GroupVersionKind
	Object client.Object
	// Namespace is that of the revisions of a set that belongs to no namespace, and Pods reports whether the set may patch
	// the pods of a namespace. A set that belongs to a namespace writes only there.
	Namespace string
	Pods      func(namespace string) bool
}

// permits returns an error for an object that is not the set's to write, whatever a planner says.
func (s *Set) permits(kind string, patch bool, object metav1.Object) error {
	within := s.Object.GetNamespace()
	switch {
	case within != "":
	case kind == podKind && patch && s.Pods != nil && s.Pods(object.GetNamespace()):
		return nil
	case kind == revisionKind:
		within = s.Namespace
	}
	if within != "" && object.GetNamespace() == within {
		return nil
	}
	return &owner.ForeignError{Set: owner.Describe(s.Kind, s.Object), Object: owner.Describe(kind, object)}
}

// Outcome is what became of the writes of a step.
type Outcome struct {
	// Failures are the writes that the API server refused.
	Failures []planning.Failure
	// Errs are errors that may pass: the API server is overloaded, or did not answer.
	Errs []error
	// Outdated reports whether the decision was based on objects that have changed since: the step
	// must be planned again when the cache has them.
	Outdated bool
	// Incomplete reports whether the budget was used up before all writes were started.
	Incomplete bool
	// Ended reports whether the set or its namespace is being deleted, so that nothing can be written.
	Ended bool
	// Pods, Claims and Revisions are the highest resource versions that the step wrote, empty if it
	// wrote none.
	Pods, Claims, Revisions string
	// Deleted are the pods that the step deleted.
	Deleted []types.UID
	// Taken are names of pods that could not be created because pods of others have them.
	Taken []string
	// Written are the names of the pods for which all requests of their action succeeded.
	Written []string
	// Writes is the number of successful writes.
	Writes int
}

// Succeeded reports whether all writes of the step were executed.
func (o *Outcome) Succeeded() bool {
	return len(o.Failures)+len(o.Errs) == 0 && !o.Outdated && !o.Incomplete && !o.Ended
}

// proceed reports whether the writes of the next kind can start. Writes to single pods that the API
// server refuses do not prevent others: a pod that cannot be patched must not stop a scale-down.
func (o *Outcome) proceed() bool { return len(o.Errs) == 0 && !o.Outdated && !o.Incomplete && !o.Ended }

// Execute executes the actions in their order, and returns what became of them. Every patch and
// delete of a pod requires that the pod is as the planner saw it. Deletes, adoptions and claims that become
// those of pods also require that the set is.
func (e *Executor) Execute(ctx context.Context, set Set, actions *planning.Actions) Outcome {
	x := &execution{Executor: e, set: set, deadline: e.options.Now().Add(e.options.Budget), missing: missing{claims: sets.Set[string]{}}}
	x.current = sync.OnceValue(func() error { return x.compare(ctx) })
	if namespace := set.Object.GetNamespace(); !x.granted(namespace, request{kind: namespaceKind, operation: "write to", name: namespace}) {
		return x.outcome
	}
	phases := []func(context.Context){
		func(ctx context.Context) { x.revisions(ctx, actions) },
		func(ctx context.Context) { x.claims(ctx, actions) },
		func(ctx context.Context) { x.patches(ctx, x.missing.permittedPatches(actions.Patches)) },
		func(ctx context.Context) { x.deletes(ctx, x.missing.permittedDeletes(actions.Deletes)) },
		func(ctx context.Context) { x.creates(ctx, x.missing.permittedCreates(actions.Creates)) },
		func(ctx context.Context) { x.pulls(ctx, actions) },
	}
	for _, phase := range phases {
		if phase(ctx); !x.outcome.proceed() {
			break
		}
	}
	return x.outcome
}

func (x *execution) revisions(ctx context.Context, actions *planning.Actions) {
	if created := actions.CreateRevision; created != nil {
		err := x.createRevision(ctx, created)
		x.note(request{kind: revisionKind, operation: "create", name: created.Name}, err)
		if err != nil {
			x.missing.revision = created.Name
		}
	}
	x.forEach(ctx, len(actions.UpdateRevisions), func(ctx context.Context, i int) {
		revision := actions.UpdateRevisions[i]
		version, err := x.update(ctx, revision, appsv1.SchemeGroupVersion.WithKind("ControllerRevision"),
			map[string]any{"revision": revision.Revision})
		x.note(request{kind: revisionKind, operation: "update", name: revision.Name, version: version}, err)
	})
	x.forEach(ctx, len(actions.DeleteRevisions), func(ctx context.Context, i int) {
		revision := actions.DeleteRevisions[i]
		err := x.remove(ctx, revisionKind, &appsv1.ControllerRevision{ObjectMeta: nameOf(revision)}, unchanged(revision))
		x.note(request{kind: revisionKind, operation: "delete", name: revision.Name}, err)
	})
}

func (x *execution) claims(ctx context.Context, actions *planning.Actions) {
	x.forEach(ctx, len(actions.CreateClaims), func(ctx context.Context, i int) {
		claim := actions.CreateClaims[i].DeepCopy()
		if x.enough(claim.Name) {
			return
		}
		err := x.create(ctx, claimKind, claim)
		if exists(err) {
			// Its name is deterministic: an earlier step created it. This one has written nothing.
			if err = x.usable(ctx, claim); err == nil {
				return
			}
		}
		x.noteClaim(request{operation: "create", name: claim.Name, version: claim.ResourceVersion}, err)
	})
	x.forEach(ctx, len(actions.UpdateClaims), func(ctx context.Context, i int) {
		claim := actions.UpdateClaims[i]
		if err := x.mayLeave(ctx, claim); err != nil {
			x.noteClaim(request{operation: "update", name: claim.Name}, err)
			return
		}
		version, err := x.update(ctx, claim, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), map[string]any{})
		x.noteClaim(request{operation: "update", name: claim.Name, version: version}, err)
	})
	x.forEach(ctx, len(actions.ExpandClaims), func(ctx context.Context, i int) {
		claim := actions.ExpandClaims[i]
		version, err := x.update(ctx, claim, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), map[string]any{
			"spec": map[string]any{"resources": map[string]any{"requests": claim.Spec.Resources.Requests}},
		})
		x.note(request{kind: claimKind, operation: "update", reason: "Expand", name: claim.Name, version: version, update: true}, err)
	})
}

// mostRefused is the number of claims of a step that the API server refuses after which no more are tried: a quota that is
// used up costs few requests, and a claim that a policy refuses does not delay the others.
const mostRefused = 10

// enough reports whether the claim is not tried, because too many were refused. Its pod waits for it.
func (x *execution) enough(claim string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.missing.claims) < mostRefused {
		return false
	}
	x.missing.claims.Insert(claim)
	return true
}

// noteClaim notes what became of a write to a claim that pods wait for.
func (x *execution) noteClaim(w request, err error) {
	w.kind = claimKind
	if x.note(w, err); err != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.missing.claims.Insert(w.name)
	}
}

// usable reads a claim that exists, and returns errOutdated if it leaves: it is that of an earlier pod with
// the same name, and the cache does not have it yet.
func (x *execution) usable(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if err := x.options.Live.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
		return fmt.Errorf("get persistentvolumeclaim %s, which exists: %w", claim.Name, err)
	}
	if planning.Leaves(claim) {
		return errOutdated
	}
	return nil
}

// mayLeave returns errOutdated for a claim that becomes that of a pod if the set has changed, or if the pod
// does not exist: the claim would be deleted at once, although a new pod of the same name may use it.
func (x *execution) mayLeave(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	owner := planning.OwnerPod(claim)
	if owner == nil {
		return nil
	}
	if err := x.current(); err != nil {
		return err
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(owner.Kind))
	err := x.options.Live.Get(ctx, client.ObjectKey{Namespace: claim.Namespace, Name: owner.Name}, live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get pod %s before its claim becomes the pod's: %w", owner.Name, err)
	}
	if err != nil || live.UID != owner.UID {
		return errOutdated
	}
	return nil
}

func (x *execution) deletes(ctx context.Context, deletes []planning.PodDelete) {
	if len(deletes) == 0 {
		return
	}
	// A cache may be old at any time, not only that of a new leader: each step that deletes pods reads the
	// metadata of its set once.
	if err := x.current(); err != nil {
		x.note(request{kind: podKind, operation: "delete", name: deletes[0].Pod.Name}, err)
		return
	}
	x.forEach(ctx, len(deletes), func(ctx context.Context, i int) {
		pod := deletes[i].Pod
		err := x.set.permits(podKind, false, pod)
		if err == nil {
			err = x.options.DeletePod(ctx, client.ObjectKeyFromObject(pod), metav1.Preconditions(unchanged(pod)))
		}
		x.note(request{kind: podKind, operation: "delete", name: pod.Name, reason: deletes[i].Reason, deleted: pod.UID, last: true}, err)
	})
}

func (x *execution) creates(ctx context.Context, creates []*corev1.Pod) {
	x.slowly(ctx, len(creates), func(ctx context.Context, i int) error {
		version, err := x.createPod(ctx, creates[i])
		x.note(request{kind: podKind, operation: "create", name: creates[i].Name, version: version, reason: "Create", last: true}, err)
		return err
	})
}

// pulls deletes and creates ImagePullJobs. One that exists belongs to the set, or is one of the next step's that is refused.
func (x *execution) pulls(ctx context.Context, actions *planning.Actions) {
	x.forEach(ctx, len(actions.DeletePulls), func(ctx context.Context, i int) {
		job := actions.DeletePulls[i]
		uid := job.UID
		err := x.remove(ctx, pullKind, &v1alpha1.ImagePullJob{ObjectMeta: nameOf(job)},
			client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if !isOutdated(err) && client.IgnoreNotFound(err) != nil {
			x.note(request{kind: pullKind, operation: "delete", name: job.Name}, err)
		}
	})
	x.forEach(ctx, len(actions.CreatePulls), func(ctx context.Context, i int) {
		created := actions.CreatePulls[i].DeepCopy()
		err := x.create(ctx, pullKind, created)
		if exists(err) {
			live := &v1alpha1.ImagePullJob{}
			if getErr := x.options.Live.Get(ctx, client.ObjectKeyFromObject(created), live); getErr == nil && x.owns(live) {
				return // The cache does not have it yet.
			}
		}
		x.note(request{kind: pullKind, operation: "create", name: created.Name}, err)
	})
}

// createRevision creates the revision. One that exists with the same owner and content is that of a
// request whose response was lost.
func (x *execution) createRevision(ctx context.Context, revision *appsv1.ControllerRevision) error {
	created := revision.DeepCopy()
	err := x.create(ctx, revisionKind, created)
	if exists(err) {
		live := &appsv1.ControllerRevision{}
		if err := x.options.Live.Get(ctx, client.ObjectKeyFromObject(revision), live); err != nil {
			return fmt.Errorf("get controllerrevision %s, which exists: %w", revision.Name, err)
		}
		if !x.owns(live) || string(live.Data.Raw) != string(revision.Data.Raw) {
			return err
		}
		created, err = live, nil
	}
	x.outcome.Revisions = objectversion.Newer(x.outcome.Revisions, created.ResourceVersion)
	return err
}

// createPod creates the pod and returns its resource version.
func (x *execution) createPod(ctx context.Context, pod *corev1.Pod) (string, error) {
	created := pod.DeepCopy()
	metav1.SetMetaDataLabel(&created.ObjectMeta, pub.WorkloadKey, x.set.Kind)
	err := x.create(ctx, podKind, created)
	if !exists(err) {
		return created.ResourceVersion, err
	}
	live := &corev1.Pod{}
	if err := x.options.Live.Get(ctx, client.ObjectKeyFromObject(pod), live); err != nil {
		return "", fmt.Errorf("get pod %s, which exists: %w", pod.Name, err)
	}
	if !x.owns(live) {
		x.taken(pod.Name)
		return "", fmt.Errorf("pod %s exists and does not belong to the set: %w", pod.Name, err)
	}
	if live.DeletionTimestamp != nil || live.Annotations[serial] != pod.Annotations[serial] {
		// The cache does not have this pod yet.
		return live.ResourceVersion, errOutdated
	}
	return live.ResourceVersion, nil
}
