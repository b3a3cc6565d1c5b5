// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/model/apiserver"
)

// server is the API server for the executor of a leader. It has the calls that the executor makes.
type server struct {
	client.Client
	leader *leader
}

func kindOf(o client.Object) Kind {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	switch o.(type) {
	case *corev1.Pod:
		kind = "Pod"
	case *corev1.PersistentVolumeClaim:
		kind = "PersistentVolumeClaim"
	case *appsv1.ControllerRevision:
		kind = "ControllerRevision"
	}
	if k := slices.Index([]string{Pods: "Pod", Claims: "PersistentVolumeClaim", Revisions: "ControllerRevision"}, kind); k > 0 {
		return Kind(k)
	}
	return Sets
}

// answer makes o the object, or what o contains of it.
func answer(o client.Object, stored Object, err error) error {
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(encode(stored)), o)
}

// Get reads the true state.
func (s server) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	stored, err := s.leader.world.store.Get(kindOf(o), keyOf(key.Name))
	return answer(o, stored, err)
}

// Create creates the object.
func (s server) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	k := kindOf(o)
	stored, err := s.leader.write(k, "create", o.GetName(), "", func() (Object, error) { return s.leader.world.store.create(k, o) })
	return answer(o, stored, err)
}

// Delete deletes a revision.
func (s server) Delete(_ context.Context, o client.Object, options ...client.DeleteOption) error {
	all := (&client.DeleteOptions{}).ApplyOptions(options)
	return s.leader.delete(kindOf(o), o.GetName(), "", *all.Preconditions)
}

// Patch changes the object.
func (s server) Patch(_ context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return s.patch("patch", o, patch)
}

// SubResource returns the subresource of pods.
func (s server) SubResource(name string) client.SubResourceClient {
	return subresource{server: s, name: name}
}

type subresource struct {
	client.SubResourceClient
	server server
	name   string
}

// Patch changes the pod.
func (s subresource) Patch(_ context.Context, o client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.server.patch("patch "+s.name, o, patch)
}

// patch applies a strategic merge patch of a pod, or a merge patch of another object, which removes nothing
// but owners.
func (s server) patch(verb string, o client.Object, patch client.Patch) error {
	k, name := kindOf(o), o.GetName()
	body, err := patch.Data(o)
	if err != nil {
		return err
	}
	var before metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &before); err != nil {
		return err
	}
	stored, err := s.leader.write(k, verb, name, "", func() (Object, error) {
		return s.leader.world.store.update(k, name, apiserver.Of(&before), func(o Object) {
			patched, err := body, error(nil)
			if k == Pods {
				if patched, err = strategicpatch.StrategicMergePatch([]byte(encode(o)), body, o); err == nil {
					*o.(*corev1.Pod) = corev1.Pod{}
				}
			} else {
				o.SetOwnerReferences(nil)
			}
			if err == nil {
				err = json.Unmarshal(patched, o)
			}
			if err != nil {
				panic(fmt.Sprintf("patch %s %s with %s: %v", k, name, body, err))
			}
		})
	})
	return answer(o, stored, err)
}

func (l *leader) deletePod(_ context.Context, pod types.NamespacedName, conditions metav1.Preconditions) error {
	i := slices.IndexFunc(l.deletes, func(d planning.PodDelete) bool { return d.Pod.Name == pod.Name })
	return l.delete(Pods, pod.Name, l.deletes[i].Reason, conditions)
}

func (l *leader) delete(k Kind, name, reason string, conditions metav1.Preconditions) error {
	_, err := l.write(k, "delete", name, reason, func() (Object, error) {
		return nil, l.world.store.Delete("", k, keyOf(name), preconditions{UID: *conditions.UID, Version: *conditions.ResourceVersion})
	})
	return err
}
