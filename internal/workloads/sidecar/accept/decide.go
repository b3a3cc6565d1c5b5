// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/history"
)

// Input is what the acceptance of a generation depends on.
type Input struct {
	// Set is the set. Its status is that of the last acceptance.
	Set *v1alpha1.SidecarSet
	// Others are what the accepted sets inject: see Views.
	Others []*v1alpha1.SidecarSet
	// Revisions are the revisions of all sets and namespaces.
	Revisions []*appsv1.ControllerRevision
	// List is which annotations are allowed.
	List WhiteList
	// Namespace is that of the set's revisions.
	Namespace string
}

// Decision is whether a generation is accepted.
type Decision struct {
	// Problems are why it is not. The other fields are empty then, except InForce of a set that OpenKruise has served
	// and that uses what Seamark does not serve: its pods are refused, so that none is created without its
	// containers.
	Problems []Problem
	// Latest is the revision of the generation. If New, it must be created, if Changed, written.
	Latest       *appsv1.ControllerRevision
	New, Changed bool
	// InForce is for the status.
	InForce *v1alpha1.SidecarSetInForce
}

// Unserved returns what the set uses that Seamark does not serve. The schema refuses it, but OpenKruise may have stored
// it.
func Unserved(set *v1alpha1.SidecarSet) []Problem {
	var problems []Problem
	forEachContainer(set, func(path string, c *v1alpha1.SidecarContainer) {
		if kind := c.UpgradeStrategy.UpgradeType; kind != "" && kind != v1alpha1.SidecarContainerColdUpgrade {
			problems = append(problems, Problem{
				InvalidContainer, path + ".upgradeStrategy.upgradeType",
				fmt.Sprintf("%q is not supported, only ColdUpgrade: %s", kind, useNative),
			})
		}
	})
	for _, key := range []string{"apps.kruise.io/sidecarset-canary", "apps.kruise.io/sidecarset-base"} {
		if _, found := set.Annotations[key]; found {
			problems = append(problems, Problem{
				InvalidContainer, "metadata.annotations[" + key + "]",
				"canary sets are not supported: use spec.injectionStrategy.revision and spec.updateStrategy.partition",
			})
		}
	}
	return problems
}

// wasServed reports whether OpenKruise has served the set, and Seamark has not accepted it yet.
func wasServed(set *v1alpha1.SidecarSet) bool {
	return set.Status.InForce == nil && set.Status.LatestRevision != ""
}

// refusing returns the record of a set whose pods are refused, nil if OpenKruise has not served it.
func refusing(set *v1alpha1.SidecarSet, problem Problem) *v1alpha1.SidecarSetInForce {
	if set.Status.InForce != nil && set.Status.InForce.Refused == "" || set.Status.LatestRevision == "" {
		return nil
	}
	record := inForce(set, nil)
	record.Refused = problem.String()
	return record
}

// Decide decides about the current generation of the set. The error is that of a revision that cannot be
// encoded or decoded.
func Decide(in Input) (Decision, error) {
	if problems := Unserved(in.Set); len(problems) > 0 {
		return Decision{Problems: problems, InForce: refusing(in.Set, problems[0])}, nil
	}
	var d Decision
	if err := d.revise(in); err != nil {
		return Decision{}, err
	}
	own := append(history.Of(in.Set, in.Namespace, in.Revisions), d.Latest)
	named, err := history.Named(in.Set, in.Namespace, own)
	var missing *history.NotFoundError
	if errors.As(err, &missing) {
		problem := Problem{RevisionNotFound, missing.Field, missing.Reason()}
		if wasServed(in.Set) {
			problem.Message += ". Copy the revisions that OpenKruise has recorded with seamark migrate revisions"
		}
		return Decision{Problems: []Problem{problem}}, nil
	}
	d.InForce = inForce(in.Set, named)
	d.InForce.Revision = d.Latest.Name
	candidate := in.Set.DeepCopy()
	candidate.Status.InForce = d.InForce
	problems := selectors(candidate)
	views, err := Views(candidate, in.Namespace, own)
	if err != nil {
		return Decision{}, err
	}
	for i, view := range views {
		d.InForce.Inherits = d.InForce.Inherits || inheritsAny(&view.Spec)
		for _, problem := range Check(view, in.Others, in.List) {
			if i > 0 {
				problem.Message = fmt.Sprintf("of the revision %s: %s", named.Name, problem.Message)
			}
			problems = append(problems, problem)
		}
	}
	if len(problems) > 0 {
		return Decision{Problems: problems}, nil
	}
	return d, nil
}

// revise finds or creates the revision of the generation.
func (d *Decision) revise(in Input) error {
	own := history.Of(in.Set, in.Namespace, in.Revisions)
	number := int64(1)
	if len(own) > 0 {
		number = own[len(own)-1].Revision + 1
	}
	wanted, err := history.New(in.Set, in.Namespace, number, ptr.Deref(in.Set.Status.CollisionCount, 0))
	if err != nil {
		return err
	}
	equal := func(rev *appsv1.ControllerRevision) bool { return history.Equal(rev, wanted) }
	if i := slices.IndexFunc(own, equal); i >= 0 {
		d.reuse(own[i], i == len(own)-1, number, history.CustomVersion(in.Set))
		return nil
	}
	d.Latest, d.New = wanted, true
	return nil
}

// reuse makes a revision the latest one: it gets the highest number, and the version of the set.
func (d *Decision) reuse(rev *appsv1.ControllerRevision, isNewest bool, number int64, version string) {
	d.Latest = rev
	if isNewest && (version == "" || rev.Labels[v1alpha1.SidecarSetCustomVersionLabel] == version) {
		return
	}
	d.Latest, d.Changed = rev.DeepCopy(), true
	if !isNewest {
		d.Latest.Revision = number
	}
	if version != "" {
		d.Latest.Labels[v1alpha1.SidecarSetCustomVersionLabel] = version
	}
}

// inForce returns the record of the acceptance.
func inForce(set *v1alpha1.SidecarSet, named *appsv1.ControllerRevision) *v1alpha1.SidecarSetInForce {
	spec := set.Spec.DeepCopy()
	record := &v1alpha1.SidecarSetInForce{
		Generation: set.Generation, Selector: spec.Selector, Namespace: spec.Namespace, NamespaceSelector: spec.NamespaceSelector,
	}
	if other := spec.SpecificNamespace; other != nil {
		if record.Namespace == "" {
			record.Namespace = other.Namespace
		}
		if record.NamespaceSelector == nil {
			record.NamespaceSelector = other.NamespaceSelector
		}
	}
	if named != nil {
		record.NamedRevision, record.Policy = named.Name, spec.InjectionStrategy.Revision.Policy
	}
	return record
}

// Views returns what an accepted set injects, as sets: its latest revision, and the one that it names. The
// revisions may be those of any set and namespace. It returns none for a set that was never accepted.
func Views(set *v1alpha1.SidecarSet, namespace string, revisions []*appsv1.ControllerRevision) ([]*v1alpha1.SidecarSet, error) {
	force := set.Status.InForce
	if force == nil {
		return nil, nil
	}
	var views []*v1alpha1.SidecarSet
	if force.Generation == set.Generation {
		views = append(views, set)
	} else if err := appendView(&views, set, namespace, revisions, force.Revision); err != nil {
		return nil, err
	}
	if force.NamedRevision == "" || force.NamedRevision == force.Revision {
		return views, nil
	}
	err := appendView(&views, set, namespace, revisions, force.NamedRevision)
	return views, err
}

// appendView adds the set as its revision with the name describes it, if it exists.
func appendView(views *[]*v1alpha1.SidecarSet, set *v1alpha1.SidecarSet, namespace string, revisions []*appsv1.ControllerRevision, name string) error {
	for _, rev := range revisions {
		if rev == nil || rev.Name != name || !history.Key(set, namespace).Controls(rev) {
			continue
		}
		parsed, err := history.Parse(rev)
		if err != nil {
			return err
		}
		view := &v1alpha1.SidecarSet{ObjectMeta: set.ObjectMeta, Spec: *set.Status.InForce.Targets()}
		view.Spec.Containers, view.Spec.InitContainers, view.Spec.Volumes = parsed.Containers, parsed.InitContainers, parsed.Volumes
		view.Spec.PatchPodMetadata = parsed.PatchPodMetadata
		*views = append(*views, view)
		return nil
	}
	return nil
}

// selectors checks the selectors as the API server checks those of an entry: one that it refuses would keep it
// from changing the entries of other sets.
func selectors(set *v1alpha1.SidecarSet) []Problem {
	var found field.ErrorList
	check := func(selector *metav1.LabelSelector, path *field.Path) {
		found = append(found, validation.ValidateLabelSelector(selector, validation.LabelSelectorValidationOptions{}, path)...)
	}
	check(set.Spec.Selector, field.NewPath("spec", "selector"))
	check(set.Status.InForce.NamespaceSelector, field.NewPath("spec", "namespaceSelector"))
	problems := make([]Problem, 0, len(found))
	for _, problem := range found {
		problems = append(problems, Problem{InvalidSelector, problem.Field, problem.ErrorBody()})
	}
	if size := entries.Size(set); size > entries.MaxBytes {
		problems = append(problems, Problem{InvalidSelector, "spec.selector", fmt.Sprintf(
			"its webhook entry takes %d bytes, and at most %d are allowed: use fewer labels and values", size, entries.MaxBytes)})
	}
	return problems
}

// Allowed returns the first problem of annotations that the list does not allow, nil if it allows all.
func Allowed(set *v1alpha1.SidecarSet, list WhiteList) *Problem {
	if problems := metadata(set, list); len(problems) > 0 {
		return &problems[0]
	}
	return nil
}

// inheritsAny reports whether a container gets something of the pod's containers.
func inheritsAny(spec *v1alpha1.SidecarSetSpec) bool {
	enabled := func(policy *v1alpha1.ShareVolumePolicy) bool {
		return policy != nil && policy.Type == v1alpha1.ShareVolumePolicyEnabled
	}
	inherits := false
	forEachContainer(&v1alpha1.SidecarSet{Spec: *spec}, func(_ string, c *v1alpha1.SidecarContainer) {
		inherits = inherits || len(c.TransferEnv) > 0 || enabled(&c.ShareVolumePolicy) || enabled(c.ShareVolumeDevicePolicy)
	})
	return inherits
}

// ConditionSeverity returns the severity of a condition of a SidecarSet.
func ConditionSeverity(c *metav1.Condition) planning.Severity {
	if c.Type == v1alpha1.SidecarSetInjecting && c.Reason == string(Paused) {
		return planning.SeverityWaiting
	}
	if c.Type == planning.PodsGuarded {
		return planning.FailureSeverity(c)
	}
	return planning.SuccessSeverity(c)
}
