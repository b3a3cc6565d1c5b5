// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"context"
	"database/sql"
	"fmt"
	"net"

	_ "github.com/lib/pq" // The driver of PostgreSQL.
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

func patroni() program {
	return program{
		recipe: "patroni", title: "PostgreSQL with Patroni", name: "postgres", image: "docker.io/seamark/recipe-patroni",
		primary: "role=primary", other: "replica=true", port: 5432,
		standing: patroniStanding, open: openSQL(dialPostgres, "INSERT INTO writes VALUES ($1)"), read: readSQL(dialPostgres),
	}
}

// runPatroni updates three replicas. Then the synchronous standby does not receive writes any more: it loses its labels, and is not
// promoted when the primary ends.
func runPatroni(s *suite) {
	after, writer := s.upgrade(patroni())
	standby := s.syncedPod()
	heal := s.drop(standby, "-d", "-p", "tcp", "--sport", "5432")
	// More than a replica may be behind.
	_, err := s.exec(s.Context(), after.primary, "postgres", "/usr/lib/postgresql/15/bin/psql", "--host=/tmp", "--username=postgres",
		"--command=CREATE TABLE more AS SELECT generate_series(1, 100000)")
	cluster.Must(s, err)
	third := s.others(patroni(), after.primary, standby)[0]
	s.untilLabels("the standby without new writes is neither synchronous nor current", standby, map[string]string{"synced": "false", "current": "false"})
	s.untilLabels("the third replica is the synchronous standby", third, map[string]string{"synced": "true", "current": "true"})
	// The signal that a stopped container gets.
	_, err = s.exec(s.Context(), after.primary, "postgres", "sh", "-c", "kill 1")
	cluster.Must(s, err)
	s.untilLabels("the third replica is the primary", third, map[string]string{"role": "primary"})
	heal()
	healed := s.atRest(patroni(), "v2")
	s.syncedPod()
	if healed.primary != third || healed.elections != after.elections+1 {
		s.Errorf("primary %s of timeline %d, want %s after one switchover from timeline %d", healed.primary, healed.elections, third, after.elections)
	}
	s.nothingLost(patroni(), writer, healed.primary)
}

// syncedPod waits until one replica is the synchronous standby, and the labels show it and that both are current.
func (s *suite) syncedPod() (name string) {
	s.Helper()
	slow.Success(s, "one synchronous standby", func(ctx context.Context) error {
		pods, err := s.pods(ctx, "app=postgres")
		if err != nil {
			return err
		}
		name = ""
		for _, pod := range pods {
			status, err := patroniStatusOf(ctx, pod)
			if err != nil {
				return err
			}
			if status.Synchronous {
				name = pod.Name
			}
			want := fmt.Sprintf("synced=%t current=%t", status.Synchronous, status.Role == "replica")
			if got := fmt.Sprintf("synced=%s current=%s", pod.Labels["synced"], pod.Labels["current"]); got != want {
				return fmt.Errorf("pod %s has the labels %s, want %s", pod.Name, got, want)
			}
		}
		return await.ErrorIf(name == "", "no replica is synchronous")
	})
	return name
}

// untilLabels waits until a pod has the labels.
func (s *suite) untilLabels(what, name string, labels map[string]string) {
	s.Helper()
	slow.Success(s, what, func(ctx context.Context) error {
		var pod corev1.Pod
		if err := s.Client.Get(ctx, s.Key(name), &pod); err != nil {
			return err
		}
		for key, value := range labels {
			if got := pod.Labels[key]; got != value {
				return fmt.Errorf("label %s of %s is %q, want %q", key, name, got, value)
			}
		}
		return nil
	})
}

// patroniStatus is what Patroni reports of a pod.
type patroniStatus struct {
	State, Role string
	Timeline    int
	Synchronous bool `json:"sync_standby"`
}

func patroniStatusOf(ctx context.Context, pod corev1.Pod) (patroniStatus, error) {
	var status patroniStatus
	return status, getJSON(ctx, "http://"+pod.Status.PodIP+":8008/patroni", &status)
}

// patroniStanding returns the primary and its timeline.
func patroniStanding(ctx context.Context, pods []corev1.Pod) (standing, error) {
	var found standing
	for _, pod := range pods {
		status, err := patroniStatusOf(ctx, pod)
		if err != nil {
			return standing{}, err
		}
		if status.Role == "master" {
			found.primary = pod.Name
		}
		if status.State != "running" || found.elections != 0 && found.elections != status.Timeline {
			return standing{}, fmt.Errorf("pod %s is %s in timeline %d, others in %d", pod.Name, status.State, status.Timeline, found.elections)
		}
		found.elections = status.Timeline
	}
	return found, await.ErrorIf(found.primary == "", "no pod is the primary")
}

func dialPostgres(address string) (*sql.DB, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	return dialSQL("postgres", "host="+host+" port="+port+" user=postgres password=change-me-1 sslmode=disable")
}
