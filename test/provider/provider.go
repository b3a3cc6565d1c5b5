// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provider is a fake virtual kubelet for tests. It registers a virtual node, runs the
// pods bound to the node, and handles the annotation kruise.io/podprobe as a provider does: it
// runs the probes in the annotation and writes their pod conditions with its own field manager.
// From Seamark it uses only the probers and the defaults of Kubernetes.
//
// Its pods have no containers: exec probes run on this machine, and network probes connect to
// the loopback address. Use it only with clusters on the local machine.
package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/probers"
	"github.com/seamark-dev/seamark/internal/probing/slots"
)

const (
	// Manager is the field manager of all writes.
	Manager = "stand-in-provider"
	// Taint keeps away pods that do not tolerate it.
	Taint = "virtual-kubelet.io/provider"
	// address is the IP address of all pods.
	address = "127.0.0.1"
)

// Provider runs the pods of one node.
type Provider struct {
	clientset kubernetes.Interface
	node      string
	probers   probe.Set

	mu   sync.Mutex
	pods map[types.UID]*pod
	// seen contains the annotation of each pod when the provider first saw it.
	seen map[types.UID]string
}

// pod is one running pod.
type pod struct {
	// annotation is the annotation that the probes come from.
	annotation string
	// stop stops the probes and waits until they have ended.
	stop func()
}

// New returns a provider for the node with the name.
func New(clientset kubernetes.Interface, node string) *Provider {
	return &Provider{
		clientset: clientset,
		node:      node,
		probers:   probers.New(execProber{}, slots.New(probers.NetworkSlots, nil), "stand-in"),
		pods:      make(map[types.UID]*pod),
		seen:      make(map[types.UID]string),
	}
}

// FirstSeen returns the annotation of the pod when the provider first saw it, and whether it
// has seen the pod.
func (p *Provider) FirstSeen(uid types.UID) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	annotation, ok := p.seen[uid]
	return annotation, ok
}

// Run registers the node and runs its pods until ctx ends, which is not an error. Then it
// deletes the node.
func (p *Provider) Run(ctx context.Context) error {
	if err := p.register(ctx); err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(p.clientset, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", p.node).String()
	}))
	group, ctx := errgroup.WithContext(ctx)
	failed := make(chan error, 1)
	handle := func(object any) {
		if found, ok := object.(*corev1.Pod); ok {
			if err := p.sync(ctx, found); err != nil && ctx.Err() == nil {
				select {
				case failed <- err:
				default:
				}
			}
		}
	}
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    handle,
		UpdateFunc: func(_, object any) { handle(object) },
		DeleteFunc: p.forget,
	})
	if err != nil {
		return fmt.Errorf("watch pods of node %s: %w", p.node, err)
	}
	factory.Start(ctx.Done())
	group.Go(func() error { return p.renewLease(ctx) })
	group.Go(func() error {
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			return nil
		}
	})
	err = group.Wait()
	factory.Shutdown()
	p.stopAll()
	return errors.Join(err, p.unregister(ctx))
}

// sync starts a new pod, runs the probes of its annotation, and removes a deleted pod.
func (p *Provider) sync(ctx context.Context, found *corev1.Pod) error {
	annotation := found.Annotations[v1alpha1.PodProbeMarkerAnnotationKey]
	p.mu.Lock()
	if _, ok := p.seen[found.UID]; !ok {
		p.seen[found.UID] = annotation
	}
	current := p.pods[found.UID]
	p.mu.Unlock()
	if found.DeletionTimestamp != nil {
		p.forget(found)
		return p.remove(ctx, found)
	}
	if current == nil {
		if err := p.start(ctx, found); err != nil {
			return err
		}
	} else if current.annotation == annotation {
		return nil
	} else {
		current.stop()
	}
	stop, err := p.probe(ctx, found, annotation)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.pods[found.UID] = &pod{annotation: annotation, stop: stop}
	p.mu.Unlock()
	return nil
}

func (p *Provider) forget(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	found, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	p.mu.Lock()
	current := p.pods[found.UID]
	delete(p.pods, found.UID)
	p.mu.Unlock()
	if current != nil {
		current.stop()
	}
}

func (p *Provider) stopAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for uid, current := range p.pods {
		current.stop()
		delete(p.pods, uid)
	}
}

// start writes the status of a running pod.
func (p *Provider) start(ctx context.Context, found *corev1.Pod) error {
	now := metav1.Now()
	status := corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}, StartTime: &now}
	for _, conditionType := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: conditionType, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for i := range found.Spec.Containers {
		started := true
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: found.Spec.Containers[i].Name, Image: found.Spec.Containers[i].Image, Ready: true, Started: &started,
			ContainerID: "stand-in://" + string(found.UID), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	return p.patchStatus(ctx, found, status)
}

func (p *Provider) patchStatus(ctx context.Context, found *corev1.Pod, status corev1.PodStatus) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": found.UID}, "status": status})
	if err != nil {
		return fmt.Errorf("encode status of pod %s: %w", found.Name, err)
	}
	_, err = p.clientset.CoreV1().Pods(found.Namespace).Patch(ctx, found.Name, types.StrategicMergePatchType, body,
		metav1.PatchOptions{FieldManager: Manager}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("patch status of pod %s: %w", found.Name, err)
	}
	return nil
}

func (p *Provider) remove(ctx context.Context, found *corev1.Pod) error {
	now := int64(0)
	err := p.clientset.CoreV1().Pods(found.Namespace).Delete(ctx, found.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(found.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete pod %s: %w", found.Name, err)
	}
	return nil
}

// probe runs the probes of the annotation, each in its own goroutine.
func (p *Provider) probe(ctx context.Context, found *corev1.Pod, annotation string) (stop func(), err error) {
	var probes []v1alpha1.PodContainerProbe
	if annotation != "" {
		if err := json.Unmarshal([]byte(annotation), &probes); err != nil {
			return nil, fmt.Errorf("decode probes of pod %s: %w", found.Name, err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for i := range probes {
		running.Go(func() { p.repeat(ctx, found, &probes[i]) })
	}
	return func() { cancel(); running.Wait() }, nil
}

// repeat runs one probe per period and writes its condition when the result changes.
func (p *Provider) repeat(ctx context.Context, found *corev1.Pod, planned *v1alpha1.PodContainerProbe) {
	ticker := time.NewTicker(max(1, time.Duration(planned.Probe.PeriodSeconds)) * time.Second)
	defer ticker.Stop()
	var last corev1.PodCondition
	for {
		if condition, ok := p.once(ctx, found, planned); ok && (condition.Status != last.Status || condition.Message != last.Message) {
			// A failed write is retried with the next result.
			if p.patchStatus(ctx, found, corev1.PodStatus{Conditions: []corev1.PodCondition{condition}}) == nil {
				last = condition
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// once runs the probe and returns the condition for the result, if there is one.
func (p *Provider) once(ctx context.Context, found *corev1.Pod, planned *v1alpha1.PodContainerProbe) (corev1.PodCondition, bool) {
	now := metav1.Now()
	condition := corev1.PodCondition{
		Type: corev1.PodConditionType(planned.PodConditionType), Status: corev1.ConditionFalse, LastProbeTime: now, LastTransitionTime: now,
	}
	target, err := targetOf(found, planned)
	if err != nil {
		condition.Status, condition.Message = corev1.ConditionUnknown, err.Error()
		return condition, true
	}
	outcome, err := p.probers.Probe(ctx, target)
	if err != nil {
		return condition, false
	}
	if outcome.Success {
		condition.Status = corev1.ConditionTrue
	}
	condition.Message = outcome.Message
	return condition, true
}
