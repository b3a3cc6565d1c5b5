// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/web/history"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/builders"
)

// States of probes. none is that of a probe that has not run.
const (
	succeeded = v1alpha1.ProbeSucceeded
	failed    = v1alpha1.ProbeFailed
	unknown   = v1alpha1.ProbeUnknown
	none      = v1alpha1.ProbeState("")
)

func markerOf(namespace, name string) model.Marker {
	return model.Marker{Namespace: namespace, Name: name, Probes: 1}
}

// probe returns a row of the first probe of a marker, whose state began so long ago.
func probe(marker, name string, state v1alpha1.ProbeState, age time.Duration, message string) probestatus.Row {
	row := probestatus.Row{Marker: marker, Probe: name, Container: "main", State: state, Message: message}
	if state != none {
		row.Source, row.LastTransitionTime = probestatus.SourceReport, metav1.NewTime(time.Now().Add(-age).Truncate(time.Second))
	}
	return row
}

func marked(row probestatus.Row, kind mark.Kind, name, value string) probestatus.Row {
	row.Marks = append(row.Marks, probestatus.Mark{Kind: kind, Name: name, Value: value})
	return row
}

// troubled adds a problem to a row.
func troubled(row probestatus.Row, reason diagnosis.Reason, message string) probestatus.Row {
	row.Problem = &probestatus.Problem{Reason: reason, Message: message}
	return row
}

func podOf(namespace, kind, workload, name, node string, rows ...probestatus.Row) model.Pod {
	builder := builders.Pod(namespace, name).Node(node).UID("uid-" + namespace + "-" + name)
	if kind == "Deployment" {
		kind, workload = "ReplicaSet", workload+"-"+hash
		builder = builder.Label(appsv1.DefaultDeploymentUniqueLabelKey, hash)
	}
	if kind != "" {
		builder = builder.Owner(metav1.OwnerReference{Kind: kind, Name: workload, Controller: new(true)})
	}
	if node == "" {
		builder = builder.Phase(corev1.PodPending)
	}
	object := builder.Build()
	object.CreationTimestamp = metav1.NewTime(time.Now().Add(-3 * time.Hour).Truncate(time.Second))
	for i := range rows {
		rows[i].Namespace, rows[i].Pod, rows[i].UID, rows[i].Node = namespace, name, object.UID, node
	}
	pod, found := model.PodOf(object, rows)
	if !found {
		panic("a pod without rows")
	}
	return pod
}

func changeOf(pod model.Pod, state v1alpha1.ProbeState, age time.Duration, message string) history.Event {
	at := time.Now().Add(-age).Truncate(time.Second)
	return history.Event{
		Probe: history.Probe{UID: pod.UID, ID: identity.ID{Marker: pod.Probes[0].Marker, Probe: pod.Probes[0].Probe}},
		State: state, Message: message, Count: 1, First: at, Last: at,
	}
}

// hash is that of the pod templates of Deployments.
const hash = "7d5c9f7d4b"

// nodeOf spreads pods over four nodes.
func nodeOf(index int) string { return fmt.Sprintf("node-%d", index%4+1) }

// sample returns a source with some workloads in each state. It has 4 markers and 41 pods: 7 have
// failed, 2 are unknown, 2 have no state.
func sample() *world {
	w := newWorld([]model.Marker{
		{Namespace: "games", Name: "game-server", Probes: 1},
		{Namespace: "games", Name: "lobby", Probes: 1, Invalid: "spec.probes[0].markerPolicy[0].labels: an empty key is not allowed"},
		{Namespace: "shop", Name: "checkout", Probes: 1},
		{Namespace: "shop", Name: "database-role", Probes: 1},
	})
	for i := range 24 {
		row := marked(probe("game-server", "idle", succeeded, time.Duration(2+i)*time.Minute, "0 players"),
			mark.KindAnnotation, corev1.PodDeletionCost, "-10")
		switch i {
		case 7, 11, 16, 21:
			row = marked(probe("game-server", "idle", failed, time.Duration(1+i)*time.Minute, fmt.Sprintf("%d players", i%9+1)),
				mark.KindAnnotation, corev1.PodDeletionCost, "200")
		case 4, 19:
			row = probe("game-server", "idle", unknown, 40*time.Second, "timed out after 1s")
		}
		w.set(podOf("games", "StatefulSet", "game-server", fmt.Sprintf("game-server-%d", i), nodeOf(i), row))
	}
	for i := range 14 {
		row := marked(probe("checkout", "drained", succeeded, time.Hour, "no open orders"), mark.KindCondition, "example.com/Drained", "True")
		name := fmt.Sprintf("checkout-%s-x%c2k%d", hash, 'b'+rune(i), i%9)
		node := nodeOf(i)
		switch i {
		case 3, 9:
			row = troubled(probe("checkout", "drained", failed, 9*time.Minute, ""), diagnosis.Reason(v1alpha1.ProbeCannotRun),
				`probe cannot be run: exec: "/opt/drained": no such file or directory`)
		case 6:
			row = probe("checkout", "drained", failed, 3*time.Minute, "12 orders are open")
		case 12:
			row = troubled(probe("checkout", "drained", none, 0, ""), diagnosis.NoPlan, "node node-9 has no NodePodProbe")
			node = "node-9"
		case 13:
			row = troubled(probe("checkout", "drained", none, 0, ""), diagnosis.PodNotBound, "pod is not bound to a node")
			node = ""
		}
		w.set(podOf("shop", "Deployment", "checkout", name, node, row))
	}
	for i := range 3 {
		role := map[bool]string{true: "primary", false: "secondary"}[i == 0]
		w.set(podOf("shop", "StatefulSet", "database", fmt.Sprintf("database-%d", i), nodeOf(i),
			marked(probe("database-role", "role", succeeded, 25*time.Minute, role), mark.KindLabel, "role", role)))
	}
	w.addHistory()
	return w
}

// addHistory adds the last hour of two pods.
func (w *world) addHistory() {
	pod := w.pods["games/game-server-7"]
	w.record(changeOf(pod, succeeded, 55*time.Minute, "0 players"), changeOf(pod, failed, 47*time.Minute, "3 players"),
		changeOf(pod, succeeded, 33*time.Minute, "0 players"), changeOf(pod, failed, 8*time.Minute, "8 players"))
	primary := w.pods["shop/database-0"]
	w.record(changeOf(primary, failed, 50*time.Minute, "secondary"), changeOf(primary, succeeded, 25*time.Minute, "primary"))
}
