// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/seamark-dev/seamark/internal/manifest"
	"github.com/seamark-dev/seamark/internal/manifest/document"
	"github.com/seamark-dev/seamark/test/expect"
)

// All manifests of the examples are valid.
func TestManifestsAreValid(t *testing.T) {
	files, err := filepath.Glob(examples + "*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d manifests: %v", len(files), err)
	}
	folders := map[string][]document.File{}
	for _, file := range files {
		contents, err := os.ReadFile(file)
		expect.NoError(t, err)
		folder := filepath.Dir(file)
		folders[folder] = append(folders[folder], document.File{Name: file, Content: contents})
	}
	for folder, inputs := range folders {
		objects, err := manifest.Read(t.Context(), inputs, manifest.Options{})
		expect.Success(t, err)
		// A local run has no AdvancedCronJobs and no BroadcastJobs and no ImagePullJobs.
		if name := filepath.Base(folder); len(objects.Pods) == 0 && !slices.Contains([]string{"season-report", "next-map"}, name) && name != "node-report" {
			t.Errorf("%s has no pods", folder)
		}
		if _, err := os.Stat(filepath.Join(folder, "README.md")); err != nil {
			t.Error(err)
		}
	}
}

// wantCode fails the test if the run has another exit code.
func (r result) wantCode(t *testing.T, code int) {
	t.Helper()
	if r.code != code {
		t.Fatalf("exit code %d, want %d", r.code, code)
	}
}

func TestGameServer(t *testing.T) {
	t.Parallel()
	r := seamark(t, "-f", examples+"game-server", "--timeout", "90s",
		"--until", "pod/game-server-* event=KruiseProbeSucceeded:idle",
		"--until", "pod/game-server-* event=KruiseProbeFailed:playing match")
	r.wantCode(t, 0)
	for _, pod := range []string{"game-server-0", "game-server-4"} {
		// The last mark may follow its event after the run has ended.
		want := map[string][]string{
			"gameserver-idle": {"true", "false"},
			"controller.kubernetes.io/pod-deletion-cost": {"-10", "10"},
			"game.io/idle": {"True", "False"},
		}
		for key, values := range want {
			got := slices.Concat(r.labels(pod, key), r.annotations(pod, key), r.conditions(pod, key))
			if len(got) == 0 || got[0] != values[0] || len(got) > 1 && got[1] != values[1] {
				t.Errorf("%s: %s had the values %v, want %v", pod, key, got, values)
			}
		}
	}
}

// One command sets a label and the deletion cost of each pod.
func TestDeletionCostByPlayers(t *testing.T) {
	t.Parallel()
	r := seamark(t, "-f", examples+"deletion-cost-by-players", "--timeout", "60s", "--until", "pod/arena-* condition=game.io/stats")
	r.wantCode(t, 0)
	for _, pod := range []string{"arena-0", "arena-1", "arena-2"} {
		costs, maps := r.annotations(pod, "controller.kubernetes.io/pod-deletion-cost"), r.labels(pod, "game.io/map")
		if len(costs) == 0 || len(maps) == 0 {
			t.Fatalf("%s has the deletion costs %v and the maps %v", pod, costs, maps)
		}
		players, err := strconv.Atoi(costs[0])
		if want := map[bool]string{true: "dust", false: "mill"}[players < 8]; err != nil || players < 0 || players > 15 || maps[0] != want {
			t.Errorf("%s has the deletion cost %s and the map %s", pod, costs[0], maps[0])
		}
	}
}

// All replicas claim to be the primary in the end. At no time do two of them have the label.
func TestOnePrimary(t *testing.T) {
	t.Parallel()
	r := seamark(t, "-f", examples+"one-primary", "--timeout", "60s",
		"--until", "pod/ledger-2 label=role:primary", "--until", "pod/ledger-1 label=role:unknown", "--until", "pod/ledger-0 label=role:unknown")
	r.wantCode(t, 0)
	role := map[string]string{}
	var primaries []string
	for _, one := range r.records {
		if one.Kind != "Label" || one.Label.Key != "role" {
			continue
		}
		if role[one.Pod] = one.Label.Value; one.Removed {
			role[one.Pod] = removed
		}
		var marked []string
		for pod, is := range role {
			if is == "primary" {
				marked = append(marked, pod)
			}
		}
		if len(marked) > 1 {
			t.Fatalf("pods %v have the label at the same time", marked)
		}
		if role[one.Pod] == "primary" {
			primaries = append(primaries, one.Pod)
		}
	}
	expect.Equal(t, "pods that became the primary", []string{"ledger-0", "ledger-1", "ledger-2"}, primaries)
}

// The pods become ready only after the condition of their readiness gate is True.
func TestReadinessGate(t *testing.T) {
	t.Parallel()
	r := seamark(t, "-f", examples+"readiness-gate", "--timeout", "60s",
		"--until", "pod/shop-* condition=Ready:True", "--until", "pod/shop-* condition=ContainersReady")
	r.wantCode(t, 0)
	for _, pod := range []string{"shop-0", "shop-1"} {
		var order []string
		for _, one := range r.records {
			if one.Pod == pod && one.Condition != nil && one.Condition.Status == "True" &&
				(one.Condition.Type == "Ready" || one.Condition.Type == "example.com/open") {
				order = append(order, one.Condition.Type)
			}
		}
		expect.Equal(t, fmt.Sprintf("%s: conditions that became True", pod), []string{"example.com/open", "Ready"}, order)
	}
}

// The primary role moves between the pods, and its label and annotation follow. Secondaries
// fall behind and catch up.
func TestPrimarySecondary(t *testing.T) {
	t.Parallel()
	r := seamark(t, "-f", examples+"primary-secondary/statefulset.yaml", "-f", examples+"primary-secondary/marker.yaml", "--timeout", "35s")
	r.wantCode(t, 0)
	primaries, fellBehind := 0, 0
	for _, pod := range []string{"database-0", "database-1", "database-2"} {
		roles := r.labels(pod, "role")
		if !slices.Contains(roles, "secondary") {
			t.Errorf("%s was never a secondary: %v", pod, roles)
		}
		if !slices.Contains(roles, "primary") {
			continue
		}
		primaries++
		evict := r.annotations(pod, "cluster-autoscaler.kubernetes.io/safe-to-evict")
		if len(evict) == 0 || evict[0] != "false" {
			t.Errorf("%s was primary without safe-to-evict=false: %v", pod, evict)
		}
		if at := slices.Index(roles, "primary"); at+1 < len(roles) {
			if len(evict) < 2 || evict[1] != removed {
				t.Errorf("%s is no longer primary but keeps safe-to-evict: %v", pod, evict)
			}
			if caught := r.conditions(pod, "example.com/caught-up"); slices.Contains(caught, "False") {
				fellBehind++
			}
		}
	}
	if primaries < 2 {
		t.Errorf("%d pods were primary, want 2 or more", primaries)
	}
	if fellBehind == 0 {
		t.Error("no former primary fell behind")
	}
}

// The liveness probe waits for the startup probe, and its second failure detects a hang.
func TestStartupThenLiveness(t *testing.T) {
	t.Parallel()
	r := seamark(t, "-f", examples+"startup-then-liveness", "--timeout", "90s", "--crash-loop-initial", "1s",
		"--until", "pod/loader-0 restarts=1", "--until", "pod/loader-0 event=Unhealthy:Startup probe failed",
		"--until", "pod/loader-0 label=stage:loading")
	r.wantCode(t, 0)
	startup, liveness := r.runs("Startup", "loader")[0], r.runs("Liveness", "loader")[0]
	if n := count(startup, "Failure"); n < 2 {
		t.Errorf("%d startup failures, want several during startup", n)
	}
	expect.Equal(t, "startup successes", 1, count(startup, "Success"))
	expect.Equal(t, "liveness failures", 2, count(liveness, "Failure"))
	checkStartupFirst(t, startup, liveness)
	fresh := slices.DeleteFunc(r.runs("Marker", "loader")[0], func(one record) bool { return one.Probe.Name != "fresh" })
	// Before the startup probe has succeeded, the first run would fail.
	if len(fresh) == 0 || fresh[0].Probe.Result != "Success" {
		t.Errorf("runs of the probe that waits for the startup probe: %d, want one or more of which the first succeeds", len(fresh))
	}
	// The stage of the new container is unknown until its first probe ends: the end of the old
	// container and the start of the new one may result in one write, which removes the label.
	stages := slices.DeleteFunc(r.labels("loader-0", "stage"), func(value string) bool { return value == removed })
	if len(stages) < 3 || !slices.Equal(stages[:3], []string{"loading", "working", "loading"}) {
		t.Errorf("stages %v", stages)
	}
}

// checkStartupFirst checks that liveness ran, and only after startup had succeeded.
func checkStartupFirst(t *testing.T, startup, liveness []record) {
	t.Helper()
	at := slices.IndexFunc(startup, func(one record) bool { return one.Probe.Result == "Success" })
	if at < 0 || len(liveness) == 0 {
		t.Fatalf("startup succeeded at %d of %d, liveness ran %d times", at, len(startup), len(liveness))
	}
	if liveness[0].Time.Before(startup[at].Time) {
		t.Errorf("liveness ran at %s, before startup succeeded at %s", liveness[0].Time, startup[at].Time)
	}
}

// The health of the server stays SERVING while the health of its service changes.
func TestGRPCServer(t *testing.T) {
	t.Parallel()
	r := seamark(t, "-f", examples+"grpc", "--timeout", "60s",
		"--until", "pod/queue-* event=KruiseProbeFailed", "--until", "pod/queue-* label=intake:closed", "--until", "pod/queue-* condition=Ready")
	r.wantCode(t, 0)
	r = r.beforeStop()
	for _, pod := range []string{"queue-0", "queue-1"} {
		// The first probe returns closed if the server is not listening yet.
		intake := r.labels(pod, "intake")
		if at := slices.Index(intake, "open"); at < 0 || !slices.Contains(intake[at:], "closed") {
			t.Errorf("%s: intake had the values %v, want open and then closed", pod, intake)
		}
		if ready := r.conditions(pod, "Ready"); len(ready) == 0 || ready[len(ready)-1] != "True" || slices.Index(ready, "True") != len(ready)-1 {
			t.Errorf("%s: Ready had the values %v, want it to stay True", pod, ready)
		}
	}
}
