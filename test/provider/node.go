// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

const (
	// heartbeat is the interval between renewals of the node lease.
	heartbeat = 10 * time.Second
	// leaseNamespace is the namespace of node leases.
	leaseNamespace = "kube-node-lease"
	// unregisterTimeout limits the deletion of the node.
	unregisterTimeout = 10 * time.Second
)

// register creates the node, ready and tainted.
func (p *Provider) register(ctx context.Context) error {
	now := metav1.Now()
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("100"), corev1.ResourceMemory: resource.MustParse("100Gi"), corev1.ResourcePods: resource.MustParse("100"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:   p.node,
			Labels: map[string]string{v1alpha1.NodeTypeLabel: v1alpha1.NodeTypeVirtualKubelet, corev1.LabelHostname: p.node},
		},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: Taint, Value: "stand-in", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Serves", LastHeartbeatTime: now, LastTransitionTime: now,
			}},
		},
	}
	if _, err := p.clientset.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("register node %s: %w", p.node, err)
	}
	return nil
}

// renewLease renews the node lease until ctx ends.
func (p *Provider) renewLease(ctx context.Context) error {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		if err := p.renewLeaseOnce(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (p *Provider) renewLeaseOnce(ctx context.Context) error {
	lease, err := p.clientset.CoordinationV1().Leases(leaseNamespace).Get(ctx, p.node, metav1.GetOptions{})
	now, seconds := metav1.NowMicro(), int32(4*heartbeat/time.Second)
	spec := coordinationv1.LeaseSpec{HolderIdentity: &p.node, LeaseDurationSeconds: &seconds, RenewTime: &now}
	switch {
	case apierrors.IsNotFound(err):
		_, err = p.clientset.CoordinationV1().Leases(leaseNamespace).Create(ctx,
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leaseNamespace, Name: p.node}, Spec: spec}, metav1.CreateOptions{})
	case err == nil:
		lease.Spec = spec
		_, err = p.clientset.CoordinationV1().Leases(leaseNamespace).Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("renew lease of node %s: %w", p.node, err)
	}
	return nil
}

// unregister deletes the node and its lease, even if ctx has ended.
func (p *Provider) unregister(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unregisterTimeout)
	defer cancel()
	if err := p.clientset.CoordinationV1().Leases(leaseNamespace).Delete(ctx, p.node, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete lease of node %s: %w", p.node, err)
	}
	if err := p.clientset.CoreV1().Nodes().Delete(ctx, p.node, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete node %s: %w", p.node, err)
	}
	return nil
}
