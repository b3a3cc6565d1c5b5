// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/hack/cluster/internal/expect"
)

func TestNewTree(t *testing.T) {
	tests := map[string]struct {
		mountinfo string
		want      []hierarchy
		wantErr   bool
	}{
		"v1": {
			mountinfo: "30 25 0:26 / /sys/fs/cgroup/cpuset rw,relatime shared:9 - cgroup cgroup rw,cpuset\n" +
				"31 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n",
			want: []hierarchy{
				{mount: "/sys/fs/cgroup/cpuset", cpuset: true}, {mount: "/sys/fs/cgroup/cpu,cpuacct"},
			},
		},
		"v2": {
			mountinfo: "30 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n",
			want:      []hierarchy{{mount: "/sys/fs/cgroup", unified: true}},
		},
		"hybrid": {
			mountinfo: "30 25 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" +
				"31 25 0:27 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n",
			want: []hierarchy{
				{mount: "/sys/fs/cgroup/unified", unified: true}, {mount: "/sys/fs/cgroup/systemd"},
			},
		},
		"subtree mounted into a container": {
			mountinfo: "30 25 0:26 /pod /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", wantErr: true,
		},
		"none": {mountinfo: "22 1 8:1 / / rw - ext4 /dev/sda rw\n", wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tree, err := NewTree(test.mountinfo, "/base")
			if (err != nil) != test.wantErr {
				t.Fatalf("error = %v, want error: %t", err, test.wantErr)
			}
			if diff := cmp.Diff(test.want, tree.hierarchies, cmp.AllowUnexported(hierarchy{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	expect.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func TestCreateFillsCpusets(t *testing.T) {
	mount := t.TempDir()
	write(t, filepath.Join(mount, "cpuset.cpus"), "0-1")
	write(t, filepath.Join(mount, "cpuset.mems"), "0")
	tree := Tree{base: "/base", hierarchies: []hierarchy{{mount: mount, cpuset: true}}}
	for range 2 {
		expect.NoError(t, tree.Create("nodes/a"))
	}
	for file, want := range map[string]string{"cpuset.cpus": "0-1", "cpuset.mems": "0"} {
		got, err := os.ReadFile(filepath.Join(mount, "base/nodes/a", file))
		if err != nil || string(got) != want {
			t.Errorf("%s = %q, error %v", file, got, err)
		}
	}
	if got := tree.Path("nodes/a"); got != "/base/nodes/a" {
		t.Errorf("path %s", got)
	}
}

func TestCreateDelegatesControllers(t *testing.T) {
	mount := t.TempDir()
	write(t, filepath.Join(mount, "cgroup.controllers"), "memory\n")
	tree := Tree{base: "/base", hierarchies: []hierarchy{{mount: mount, unified: true}}}
	expect.NoError(t, tree.Create(""))
	got, err := os.ReadFile(filepath.Join(mount, "cgroup.subtree_control"))
	if err != nil || string(got) != "+memory" {
		t.Errorf("subtree_control = %q, error %v", got, err)
	}
}

func TestProcessesListsTheTree(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	tree := Tree{base: "/base", hierarchies: []hierarchy{{mount: one}, {mount: two}}}
	for path, pids := range map[string]string{
		one + "/other":          "9\n",
		one + "/base":           "4\n",
		one + "/base/system/a":  "3\n5\n",
		two + "/base/nodes/n/p": "5\n6\n0\n",
	} {
		expect.NoError(t, os.MkdirAll(path, 0o755))
		write(t, filepath.Join(path, "cgroup.procs"), pids)
	}
	tests := map[string][]int{"": {3, 4, 5, 6}, "system": {3, 5}, "system/a": {3, 5}, "missing": nil}
	for path, want := range tests {
		got, err := tree.Processes(path)
		expect.NoError(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", path, diff)
		}
	}
}
