// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent/cri"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
)

// containerLog records the calls of containers.
type containerLog struct{ lines []string }

func (l *containerLog) ContainerChanged(key probeid.ContainerKey, run streak.ContainerRun) {
	l.lines = append(l.lines, fmt.Sprintf("%s/%s is %s", key.PodUID, key.Name, run.ID))
}

func (l *containerLog) ContainerGone(key probeid.ContainerKey) {
	l.lines = append(l.lines, fmt.Sprintf("%s/%s is gone", key.PodUID, key.Name))
}

func (l *containerLog) ContainerUnknown(key probeid.ContainerKey) {
	l.lines = append(l.lines, fmt.Sprintf("%s/%s is unknown", key.PodUID, key.Name))
}

func TestContainersOfStaticPods(t *testing.T) {
	instance := func(pod, id string) cri.Instance {
		return cri.Instance{
			ContainerKey: probeid.ContainerKey{PodUID: "hash", Name: "etcd"},
			Pod:          types.NamespacedName{Namespace: "kube-system", Name: pod}, ID: id, Running: true,
		}
	}
	mirror := func(uid string) []v1alpha1.PodProbe {
		return []v1alpha1.PodProbe{{Namespace: "kube-system", Name: "etcd-a", UID: uid, RuntimeUID: "hash"}}
	}
	for name, tc := range map[string]struct {
		play func(c *containers)
		want []string
	}{
		"plan before container": {
			play: func(c *containers) {
				c.Follow(mirror("m1"))()
				c.changed(instance("etcd-a", "c1"))
				c.unknown(instance("etcd-a", "c1").ContainerKey)
				c.gone(instance("etcd-a", "c1").ContainerKey)
			},
			want: []string{
				"hash/etcd is c1", "m1/etcd is c1", "hash/etcd is unknown", "m1/etcd is unknown",
				"hash/etcd is gone", "m1/etcd is gone",
			},
		},
		"container before plan": {
			play: func(c *containers) {
				c.changed(instance("etcd-a", "c1"))
				c.Follow(mirror("m1"))()
				c.changed(instance("etcd-a", "c2"))
			},
			want: []string{"hash/etcd is c1", "m1/etcd is c1", "hash/etcd is c2", "m1/etcd is c2"},
		},
		"same plan again": {
			play: func(c *containers) {
				c.changed(instance("etcd-a", "c1"))
				c.Follow(mirror("m1"))()
				c.Follow(mirror("m1"))()
			},
			want: []string{"hash/etcd is c1", "m1/etcd is c1"},
		},
		"recreated mirror pod": {
			play: func(c *containers) {
				c.changed(instance("etcd-a", "c1"))
				c.Follow(mirror("m1"))()
				c.Follow(mirror("m2"))()
			},
			want: []string{"hash/etcd is c1", "m1/etcd is c1", "m2/etcd is c1", "m1/etcd is gone"},
		},
		"no longer planned": {
			play: func(c *containers) {
				c.changed(instance("etcd-a", "c1"))
				c.Follow(mirror("m1"))()
				c.Follow(nil)()
				c.changed(instance("etcd-a", "c2"))
			},
			want: []string{"hash/etcd is c1", "m1/etcd is c1", "m1/etcd is gone", "hash/etcd is c2"},
		},
		"never described": {
			play: func(c *containers) {
				c.Follow(mirror("m1"))()
				c.unknown(instance("etcd-a", "c1").ContainerKey)
				c.Follow(mirror("m2"))()
				c.changed(instance("etcd-a", "c1"))
				c.Follow(mirror("m2"))()
			},
			want: []string{
				"hash/etcd is unknown", "m1/etcd is unknown", "m2/etcd is unknown", "m1/etcd is gone",
				"hash/etcd is c1", "m2/etcd is c1",
			},
		},
		"never described, then gone": {
			play: func(c *containers) {
				c.unknown(instance("etcd-a", "c1").ContainerKey)
				c.Follow(mirror("m1"))()
				c.gone(instance("etcd-a", "c1").ContainerKey)
				c.Follow(mirror("m2"))()
			},
			want: []string{"hash/etcd is unknown", "m1/etcd is unknown", "hash/etcd is gone", "m1/etcd is gone"},
		},
		"not described any more": {
			play: func(c *containers) {
				c.changed(instance("etcd-a", "c1"))
				c.unknown(instance("etcd-a", "c1").ContainerKey)
				c.Follow(mirror("m1"))()
			},
			want: []string{"hash/etcd is c1", "hash/etcd is unknown", "m1/etcd is c1", "m1/etcd is unknown"},
		},
		"forged annotation": {
			play: func(c *containers) {
				c.changed(instance("etcd-b", "c1"))
				c.Follow(mirror("m1"))()
				c.changed(instance("etcd-b", "c2"))
			},
			want: []string{"hash/etcd is c1", "hash/etcd is c2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := &containerLog{}
			tc.play(newContainers(log))
			if diff := cmp.Diff(tc.want, log.lines); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunningPods(t *testing.T) {
	c := newContainers(&containerLog{})
	instance := func(uid types.UID, name string, running bool) cri.Instance {
		return cri.Instance{ContainerKey: probeid.ContainerKey{PodUID: uid, Name: name}, ID: "c1", Running: running}
	}
	c.changed(instance("one", "main", true))
	c.changed(instance("one", "ended", false))
	c.changed(instance("two", "main", false))
	c.changed(instance("three", "main", true))
	c.gone(instance("three", "main", true).ContainerKey)
	if diff := cmp.Diff(map[string]bool{"one": true}, c.running()); diff != "" {
		t.Errorf("running() (-want +got):\n%s", diff)
	}
}
