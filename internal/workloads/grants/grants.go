// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package grants decides in which namespaces seamark-workloads may write pods. Rights and policy come from one object: a
// RoleBinding with a label gives the rights of a ClusterRole in its namespace, and is the parameter without which the
// admission policy of pods is not evaluated. The pods of all other namespaces cost nothing more.
//
// The program that writes pods cannot create RoleBindings. The manager does so, for namespaces that have sets, unless an
// administrator does.
//
// The API server reads the RoleBindings for both from one informer, and admits a request after it has authorized it. So
// the policy is in effect when the rights are, and the only request that the policy could miss is one that was authorized
// before the RoleBinding was deleted and is admitted afterwards: its body may arrive slowly. A RoleBinding therefore loses
// its subjects first, and is deleted when every request of that time has ended.
package grants

import (
	"fmt"
	"slices"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

const (
	// Account is the service account of seamark-workloads.
	Account = "seamark-workloads"
	// Role is the ClusterRole of the rights, and the name of the RoleBindings that the manager creates.
	Role = "seamark-workloads-pods"
	// Label is the label of the RoleBindings. The policy selects its parameters by it.
	Label = "seamark.dev/grant"
	// LabelValue is the value of Label.
	LabelValue = "workloads"
	// managedBy is the label of the RoleBindings that the manager has created, and manager is its value.
	managedBy, manager = "app.kubernetes.io/managed-by", "seamark-manager"
)

const (
	// patience is how long a set waits for its RoleBinding before it reports that it waits.
	patience = 5 * time.Second
	// spread is how long the API servers may take to know a RoleBinding that this program knows.
	spread = 5 * time.Second
)

// Gives reports whether the RoleBinding gives seamark-workloads in the namespace its rights.
func Gives(binding *rbacv1.RoleBinding, namespace string) bool {
	return binding.Labels[Label] == LabelValue && binding.RoleRef.Kind == "ClusterRole" && binding.RoleRef.Name == Role &&
		slices.Contains(binding.Subjects, subject(namespace))
}

// subject returns the service account of seamark-workloads in the namespace.
func subject(namespace string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: Account, Namespace: namespace}
}

// Store is an informer of RoleBindings with Label, indexed by namespace.
type Store interface {
	// GetIndexer returns the RoleBindings.
	GetIndexer() toolscache.Indexer
}

// in returns the RoleBindings of a namespace.
func in(indexer toolscache.Indexer, namespace string) []*rbacv1.RoleBinding {
	found, _ := indexer.ByIndex(toolscache.NamespaceIndex, namespace) // Informers have this index.
	bindings := make([]*rbacv1.RoleBinding, 0, len(found))
	for _, object := range found {
		if binding, ok := object.(*rbacv1.RoleBinding); ok {
			bindings = append(bindings, binding)
		}
	}
	return bindings
}

// Reader says in which namespaces seamark-workloads may write. It is safe for concurrent use. Use NewReader to create one.
type Reader struct {
	store     Store
	namespace string
	now       func() time.Time

	mu sync.Mutex
	// known is since when each namespace that was checked has or misses its RoleBinding.
	known map[string]since
}

type since struct {
	granted bool
	at      time.Time
}

// NewReader returns a Reader for seamark-workloads in the namespace.
func NewReader(store Store, namespace string, now func() time.Time) *Reader {
	return &Reader{store: store, namespace: namespace, now: now, known: map[string]since{}}
}

// MissingError means that a namespace has no RoleBinding for seamark-workloads.
type MissingError struct {
	// Namespace has no RoleBinding.
	Namespace string
	// Late is whether it has been missing for longer than its creation takes.
	Late bool
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("waiting for a RoleBinding of ClusterRole %s with label %s=%s in namespace %q: "+
		"the manager creates it unless workloads.excludedNamespaces has the namespace, or workloads.namespaces lists others", Role, Label, LabelValue, e.Namespace)
}

// Check returns a MissingError if seamark-workloads may not write in the namespace. Its own rights in its own namespace do
// not come from here.
func (r *Reader) Check(namespace string) error {
	if namespace == r.namespace || namespace == "" {
		return nil
	}
	granted := slices.ContainsFunc(in(r.store.GetIndexer(), namespace), func(binding *rbacv1.RoleBinding) bool { return Gives(binding, r.namespace) })
	change := r.note(namespace, granted)
	if granted {
		return nil
	}
	return &MissingError{Namespace: namespace, Late: r.now().Sub(change.at) >= patience}
}

// Spreads reports whether API servers may not know the RoleBinding of the namespace yet, and therefore refuse writes.
func (r *Reader) Spreads(namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	change := r.known[namespace]
	return change.granted && r.now().Sub(change.at) < spread
}

func (r *Reader) note(namespace string, granted bool) since {
	r.mu.Lock()
	defer r.mu.Unlock()
	change, found := r.known[namespace]
	if !found || change.granted != granted {
		change = since{granted: granted, at: r.now()}
		r.known[namespace] = change
	}
	return change
}

// OfManager returns the labels of the RoleBindings that a manager has created.
func OfManager() map[string]string { return map[string]string{Label: LabelValue, managedBy: manager} }

// binding returns the RoleBinding that the manager creates in a namespace for seamark-workloads in own.
func binding(namespace, own string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Role, Labels: OfManager()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: Role},
		Subjects:   []rbacv1.Subject{subject(own)},
	}
}
