// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

const (
	// successorAnnotation on the Lease names the replica that the primary hands its role to.
	successorAnnotation = "example.com/successor"
	// lastAnnotation on the Lease names the last primary, also after it has released the Lease.
	lastAnnotation = "example.com/last-primary"
)

// errOutdated reports that another replica has written the record since it was read.
var errOutdated = errors.New("the record has changed")

// record is what the replicas agree on.
type record struct {
	// holder is the primary, or empty if it has released the role.
	holder string
	// last is the last primary. It is the holder, if there is one.
	last string
	// since is when the holder became the primary.
	since time.Time
	// successor is the replica that the holder is to hand the role to, or empty.
	successor string
	// switches is how often the role has moved from one replica to another.
	switches int32
	// version identifies the write of this record.
	version string
	// fresh reports whether the database is new, so that there is nothing to catch up with.
	fresh bool
}

// election stores the record.
type election interface {
	// read returns the record, which is empty if nothing was written yet.
	read(ctx context.Context) (record, error)
	// electable reports whether a replica can become the primary: whether it is not about to be
	// stopped or restarted. A successor must be ready, too.
	electable(ctx context.Context, name string, successor bool) (bool, error)
	// write replaces the record whose version is that of the argument. It returns errOutdated if
	// the stored version is another one.
	write(ctx context.Context, r record) error
}

// newElection returns an election by a Lease, or by the clock if the process does not run in a
// cluster.
func newElection(o options) (election, error) {
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return newRotation(o)
	}
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	config.Timeout = o.timing.lease / 2
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	return &leaseElection{
		leases: client.CoordinationV1().Leases(o.namespace), pods: client.CoreV1().Pods(o.namespace),
		name: o.lease, duration: o.timing.lease,
	}, nil
}

// leaseElection stores the record in a Lease.
type leaseElection struct {
	leases   coordination.LeaseInterface
	pods     core.PodInterface
	name     string
	duration time.Duration
}

func (e *leaseElection) read(ctx context.Context) (record, error) {
	lease, err := e.leases.Get(ctx, e.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return record{fresh: true}, nil
	}
	if err != nil {
		return record{}, fmt.Errorf("get lease: %w", err)
	}
	return record{
		holder: ptr.Deref(lease.Spec.HolderIdentity, ""), last: lease.Annotations[lastAnnotation],
		successor: lease.Annotations[successorAnnotation], switches: ptr.Deref(lease.Spec.LeaseTransitions, 0),
		since: ptr.Deref(lease.Spec.AcquireTime, metav1.MicroTime{}).Time, version: lease.ResourceVersion,
	}, nil
}

// electable reads the pod of the replica. During an update in place, the controller sets the
// condition InPlaceUpdateReady to False before the container is restarted.
func (e *leaseElection) electable(ctx context.Context, name string, successor bool) (bool, error) {
	pod, err := e.pods.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get pod %s: %w", name, err)
	}
	hindered := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		decides := c.Type == "InPlaceUpdateReady" || successor && c.Type == corev1.PodReady
		return decides && c.Status == corev1.ConditionFalse
	})
	return pod.DeletionTimestamp == nil && !hindered, nil
}

func (e *leaseElection) write(ctx context.Context, r record) error {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: e.name, ResourceVersion: r.version, Annotations: map[string]string{lastAnnotation: r.last},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &r.holder, LeaseTransitions: &r.switches, RenewTime: ptr.To(metav1.NowMicro()),
			AcquireTime:          ptr.To(metav1.NewMicroTime(r.since)),
			LeaseDurationSeconds: ptr.To(max(int32(e.duration/time.Second), 1)),
		},
	}
	if r.successor != "" {
		lease.Annotations[successorAnnotation] = r.successor
	}
	var err error
	if r.version == "" {
		_, err = e.leases.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		_, err = e.leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return errOutdated
	}
	if err != nil {
		return fmt.Errorf("write lease: %w", err)
	}
	return nil
}

// rotation lets each replica be the primary for the same time, by the clock of the machine: the
// replicas agree without communicating.
type rotation struct {
	set      string
	replicas int
	turn     time.Duration
	now      func() time.Time
}

// newRotation returns the rotation of the replicas whose names end with an ordinal.
func newRotation(o options) (*rotation, error) {
	set, ordinal, found := cutLast(o.name, "-")
	if _, err := strconv.Atoi(ordinal); err != nil || !found {
		return nil, fmt.Errorf("--name: %q is invalid: must end with - and a number if there is no API server", o.name)
	}
	fmt.Fprintf(os.Stderr, "example-database: no API server: the replicas take turns of %s\n", o.rotate)
	return &rotation{set: set, replicas: o.replicas, turn: o.rotate, now: time.Now}, nil
}

func (e *rotation) read(context.Context) (record, error) {
	now := e.now()
	turns := now.UnixNano() / int64(e.turn)
	holder := e.set + "-" + strconv.FormatInt(turns%int64(e.replicas), 10)
	return record{
		holder: holder, last: holder, since: time.Unix(0, turns*int64(e.turn)),
		version: strconv.FormatInt(now.UnixNano(), 10), fresh: true,
	}, nil
}

// electable is true: the clock decides.
func (*rotation) electable(context.Context, string, bool) (bool, error) { return true, nil }

// write ignores renewals and releases: the clock decides.
func (*rotation) write(context.Context, record) error { return nil }

func cutLast(s, separator string) (before, after string, found bool) {
	at := strings.LastIndex(s, separator)
	if at < 0 {
		return s, "", false
	}
	return s[:at], s[at+len(separator):], true
}
