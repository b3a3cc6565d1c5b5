// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provider stands in for a virtual kubelet and its provider: it registers a Node
// that no kubelet runs, takes the pods that are bound to it, and does with the annotation
// kruise.io/podprobe what a provider does. It reads it, runs the probes and writes the pod
// conditions that they name, as a field manager of its own. Of Seamark it uses what a
// provider would write for itself: the probers and the defaults of Kubernetes.
//
// Its pods have no containers: a command runs on this machine, and a network probe goes to
// the loopback address. It is for clusters on one's own machine alone.
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
	"github.com/seamark-dev/seamark/internal/probe"
	"github.com/seamark-dev/seamark/internal/probe/probers"
)

const (
	// Manager is the field manager of all that the provider writes.
	Manager = "stand-in-provider"
	// Taint keeps pods away that don't tolerate it.
	Taint = "virtual-kubelet.io/provider"
	// address is that of every pod.
	address = "127.0.0.1"
)

// Provider runs the pods of one node.
type Provider struct {
	clientset kubernetes.Interface
	node      string
	probers   probe.Set

	mu   sync.Mutex
	pods map[types.UID]*pod
	// seen says of each pod what its annotation was when the provider first met it.
	seen map[types.UID]string
}

// pod is one pod that runs here.
type pod struct {
	// annotation is the one that the probes are run by.
	annotation string
	// stop ends the probes, and returns when they have ended.
	stop func()
}

// New returns a provider for the node of the name.
func New(clientset kubernetes.Interface, node string) *Provider {
	return &Provider{
		clientset: clientset,
		node:      node,
		probers:   probers.New(command{}, "stand-in"),
		pods:      make(map[types.UID]*pod),
		seen:      make(map[types.UID]string),
	}
}

// FirstSeen returns the annotation that the pod had when the provider first met it, and
// whether it has met it.
func (p *Provider) FirstSeen(uid types.UID) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	annotation, met := p.seen[uid]
	return annotation, met
}

// Run registers the node and serves its pods until ctx ends, which is no error. Then the
// node is deleted.
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
		return fmt.Errorf("following the pods of node %s: %w", p.node, err)
	}
	factory.Start(ctx.Done())
	group.Go(func() error { return p.beat(ctx) })
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

// sync brings the pod to where it should be: running, probed as its annotation says, or
// gone.
func (p *Provider) sync(ctx context.Context, found *corev1.Pod) error {
	annotation := found.Annotations[v1alpha1.PodProbeMarkerAnnotationKey]
	p.mu.Lock()
	if _, met := p.seen[found.UID]; !met {
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

// start says that the pod runs.
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
		return fmt.Errorf("encoding the status of pod %s: %w", found.Name, err)
	}
	_, err = p.clientset.CoreV1().Pods(found.Namespace).Patch(ctx, found.Name, types.StrategicMergePatchType, body,
		metav1.PatchOptions{FieldManager: Manager}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the status of pod %s: %w", found.Name, err)
	}
	return nil
}

func (p *Provider) remove(ctx context.Context, found *corev1.Pod) error {
	now := int64(0)
	err := p.clientset.CoreV1().Pods(found.Namespace).Delete(ctx, found.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(found.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("removing pod %s: %w", found.Name, err)
	}
	return nil
}

// probe runs the probes that the annotation hands over, each by its own clock.
func (p *Provider) probe(ctx context.Context, found *corev1.Pod, annotation string) (stop func(), err error) {
	var probes []v1alpha1.PodContainerProbe
	if annotation != "" {
		if err := json.Unmarshal([]byte(annotation), &probes); err != nil {
			return nil, fmt.Errorf("reading the probes of pod %s: %w", found.Name, err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for i := range probes {
		running.Go(func() { p.repeat(ctx, found, &probes[i]) })
	}
	return func() { cancel(); running.Wait() }, nil
}

// repeat runs one probe each period and writes its condition when its result changes.
func (p *Provider) repeat(ctx context.Context, found *corev1.Pod, asked *v1alpha1.PodContainerProbe) {
	ticker := time.NewTicker(max(1, time.Duration(asked.Probe.PeriodSeconds)) * time.Second)
	defer ticker.Stop()
	var last corev1.PodCondition
	for {
		if condition, told := p.once(ctx, found, asked); told && (condition.Status != last.Status || condition.Message != last.Message) {
			// A write that fails is tried again with the next result.
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

// once runs the probe and returns the condition that its result is, if there is one.
func (p *Provider) once(ctx context.Context, found *corev1.Pod, asked *v1alpha1.PodContainerProbe) (corev1.PodCondition, bool) {
	now := metav1.Now()
	condition := corev1.PodCondition{
		Type: corev1.PodConditionType(asked.PodConditionType), Status: corev1.ConditionFalse, LastProbeTime: now, LastTransitionTime: now,
	}
	target, err := targetOf(found, asked)
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
