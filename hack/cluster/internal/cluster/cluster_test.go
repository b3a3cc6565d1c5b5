// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/hack/cluster/internal/expect"
	"github.com/seamark-dev/seamark/hack/cluster/internal/layout"
	"github.com/seamark-dev/seamark/hack/cluster/internal/node"
)

func start() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) }

func readyNode(name string, change func(*corev1.Node)) *corev1.Node {
	item := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	item.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(start()),
	}}
	if change != nil {
		change(item)
	}
	return item
}

func TestNodeReady(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1.Node)
		since  time.Time
		want   string
	}{
		"ready":                      {},
		"heartbeat at the start":     {since: start()},
		"heartbeat before the start": {since: start().Add(time.Second), want: "has not reported since"},
		"not ready":                  {change: func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }, want: "not Ready"},
		"unknown":                    {change: func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, want: "not Ready"},
		"no condition":               {change: func(n *corev1.Node) { n.Status.Conditions = nil }, want: "has not reported"},
		"tainted":                    {change: func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady}} }, want: "taint"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := nodeReady(*readyNode("node-1", test.change), test.since)
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestShimSockets(t *testing.T) {
	tests := map[string]struct {
		files map[string]string
		want  []string
	}{
		"containerd 2": {
			files: map[string]string{"bootstrap.json": `{"version":3,"address":"unix:///run/containerd/s/a","protocol":"ttrpc"}`},
			want:  []string{"/run/containerd/s/a"},
		},
		"containerd 1":    {files: map[string]string{"address": "unix:///run/containerd/s/b\n"}, want: []string{"/run/containerd/s/b"}},
		"vsock address":   {files: map[string]string{"address": "vsock://3:1024"}},
		"incomplete file": {files: map[string]string{"bootstrap.json": "{"}},
		"no files":        {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bundle := t.TempDir()
			for file, text := range test.files {
				expect.NoError(t, os.WriteFile(filepath.Join(bundle, file), []byte(text), 0o644))
			}
			if diff := cmp.Diff(test.want, shimSockets(bundle)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLinksInto(t *testing.T) {
	folder := t.TempDir()
	for name, target := range map[string]string{
		"ours": "/c/nodes/node-1/pod-logs/a.log", "other": "/var/log/pods/a.log", "near": "/c/nodes/node-1/pod-logs-2/a.log",
	} {
		expect.NoError(t, os.Symlink(target, filepath.Join(folder, name)))
	}
	got, err := linksInto(folder, "/c/nodes/node-1/pod-logs")
	expect.NoError(t, err)
	if diff := cmp.Diff([]string{filepath.Join(folder, "ours")}, got); diff != "" {
		t.Error(diff)
	}
	if none, err := linksInto(filepath.Join(folder, "missing"), "/c"); err != nil || none != nil {
		t.Errorf("links %v, error %v", none, err)
	}
}

// TestOptionsThatAreNotSet checks that a repair keeps the nodes of the cluster and their runtimes.
func TestOptionsThatAreNotSet(t *testing.T) {
	for name, test := range map[string]struct {
		present []node.Runtime
		set     Options
		want    Options
	}{
		"no cluster": {want: Options{1, node.Runtimes{node.RuntimeContainerd}}},
		"two nodes": {
			present: []node.Runtime{node.RuntimeDebian, node.RuntimeContainerd17}, want: Options{
				2, node.Runtimes{node.RuntimeDebian, node.RuntimeContainerd17},
			},
		},
		"one more": {
			present: []node.Runtime{node.RuntimeDebian}, set: Options{Nodes: 2}, want: Options{2, node.Runtimes{node.RuntimeDebian, node.RuntimeContainerd}},
		},
		"another runtime": {
			present: []node.Runtime{node.RuntimeDebian}, set: Options{Runtimes: node.Runtimes{node.RuntimeContainerd}},
			want: Options{1, node.Runtimes{node.RuntimeContainerd}},
		},
		"all options": {
			present: []node.Runtime{node.RuntimeDebian}, set: Options{3, node.Runtimes{node.RuntimeContainerd17}},
			want: Options{3, node.Runtimes{node.RuntimeContainerd17}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := layout.New(t.TempDir())
			expect.NoError(t, err)
			for i, runtime := range test.present {
				expect.NoError(t, writeIfNew(dir.Node(fmt.Sprintf("node-%d", i+1)).Config("runtime"), []byte(runtime)))
			}
			got, plan, err := (&Cluster{dir: dir}).complete(test.set)
			if err != nil || len(plan) != test.want.Nodes {
				t.Fatalf("%d nodes, error %v, want %d", len(plan), err, test.want.Nodes)
			}
			expect.Equal(t, "options", test.want, got)
		})
	}
}
