// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	_ "github.com/go-sql-driver/mysql" // The driver of MariaDB.
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/expect"
)

func galera() program {
	return program{
		recipe: "galera", title: "MariaDB with Galera", name: "galera", image: "docker.io/seamark/recipe-galera", port: 3306,
		open: openSQL(dialMariaDB, "INSERT INTO writes VALUES (?)"), read: readSQL(dialMariaDB),
	}
}

// runGalera begins an update while a node is desynced, as for a backup: no node is updated or can be deleted until it is synced again.
// Then it cuts the nodes off from each other.
func runGalera(s *suite) {
	s.apply()
	before := s.synced("v1")
	if _, err := s.exec(s.Context(), "galera-0", "mariadb", "mariadb", "--host=127.0.0.1"); err == nil || !strings.Contains(err.Error(), "Access denied") {
		s.Errorf("log in as root by TCP: error %v, want a refusal", err)
	}
	updates := s.record(galera().image+":v2", "wsrep")
	writer := s.write(galera(), 0, s.addresses(galera(), "wsrep=Synced"))

	const desynced = "galera-1"
	s.setGlobal(desynced, "wsrep_desync = ON")
	s.untilLabels("the node is marked as desynced", desynced, map[string]string{"wsrep": "Donor"})
	s.Kubectl("wait", "pod/"+desynced, "--for=condition=Ready=false", fmt.Sprintf("--timeout=%s", slow.Timeout))
	s.setImage("statefulsets.apps.kruise.io/galera", galera().image+":v2")
	slow.Success(s, "the update waits for the desynced node", func(ctx context.Context) error {
		message, err := s.TryKubectl(ctx, "get", "statefulsets.apps.kruise.io/galera", "-o",
			`jsonpath={.status.conditions[?(@.type=="PodsGuarded")].message}`)
		if err == nil && !strings.Contains(message, desynced) {
			err = fmt.Errorf("condition PodsGuarded: %q, want one with %s", message, desynced)
		}
		return err
	})
	for _, change := range []string{"delete pod " + desynced, "set image pod/" + desynced + " mariadb=" + galera().image + ":v2"} {
		out, err := s.TryKubectl(s.Context(), append(strings.Fields(change), "--dry-run=server")...)
		if err == nil || !strings.Contains(out+err.Error(), "galera-not-synced guards it") {
			s.Errorf("%s: error %v, want one of the guard: %s", change, err, out)
		}
	}
	waiting, err := galeraStatusOf(s.Context(), *s.Pod(desynced))
	cluster.Must(s, err)
	expect.Equal(s, "the state of the node at the end of the wait", "2", waiting.state)
	expect.Equal(s, "changes of the cluster while a node is desynced", 0, waiting.changes-before.changes)

	s.setGlobal(desynced, "wsrep_desync = OFF")
	after := s.synced("v2")
	names, states := updates.updated()
	expect.Equal(s, "nodes that are updated", []string{"galera-0", "galera-1", "galera-2"}, slices.Sorted(slices.Values(names)))
	expect.Equal(s, "states of the nodes when they are updated", []string{"Synced", "Synced", "Synced"}, states)
	// Each node leaves the cluster once, and joins it again.
	expect.Equal(s, "changes of the cluster by the update", 6, after.changes-before.changes)
	s.noSecondCluster()
	s.nothingLost(galera(), writer, desynced)
}

// noSecondCluster replaces the first node by one without data while nodes cannot reach each other: it waits until the others are a
// cluster again.
func (s *suite) noSecondCluster() {
	s.Helper()
	healOne, healTwo := s.cutOff("galera-1"), s.cutOff("galera-2")
	s.untilLabels("a node without a quorum", "galera-0", map[string]string{"wsrep": "Initialized"})
	// The guard does not hold it.
	s.Kubectl("delete", "pod", "galera-0")
	slow.Success(s, "the new node starts its server", func(ctx context.Context) error {
		command, err := s.exec(ctx, "galera-0", "mariadb", "sh", "-c", `for p in /proc/[0-9]*/cmdline; do tr '\0' ' ' <$p | grep '^mariadbd '; done | grep .`)
		if strings.Contains(command, "--wsrep-new-cluster") {
			s.Fatalf("a node without data that is cut off begins a cluster: %q", command)
		}
		return err
	})
	healOne()
	healTwo()
	slow.Success(s, "the nodes reach each other", func(ctx context.Context) error {
		size, err := s.exec(ctx, "galera-1", "mariadb", "mariadb", "--execute", "SHOW STATUS LIKE 'wsrep_cluster_size'")
		return errors.Join(err, await.ErrorIf(!strings.HasSuffix(strings.TrimSpace(size), "3"), "%q", size))
	})
	// Not all nodes that had the last quorum are back: somebody must say that those that are left are the cluster.
	s.setGlobal("galera-1", "wsrep_provider_options = 'pc.bootstrap=1'")
	s.synced("v2")
}

// setGlobal changes a variable of a node.
func (s *suite) setGlobal(name, assignment string) {
	s.Helper()
	_, err := s.exec(s.Context(), name, "mariadb", "mariadb", "--execute", "SET GLOBAL "+assignment)
	cluster.Must(s, err)
}

// synced waits until three nodes are one cluster and synced, and have labels that show it.
func (s *suite) synced(tag string) galeraStatus {
	s.Helper()
	var found galeraStatus
	s.settled("app=galera", galera().image+":"+tag, 3, func(ctx context.Context, pods []corev1.Pod) error {
		for _, pod := range pods {
			status, err := galeraStatusOf(ctx, pod)
			if err != nil {
				return err
			}
			if status.size != "3" || status.state != "4" || pod.Labels["wsrep"] != "Synced" {
				return fmt.Errorf("node %s has the status %+v and the label %q, want three nodes, all synced", pod.Name, status, pod.Labels["wsrep"])
			}
			found = status
		}
		return nil
	})
	return found
}

// galeraStatus is what a node reports of itself and its cluster.
type galeraStatus struct {
	// state is 2 of a node that is a donor or desynced, and 4 of one that is synced. size is the number of nodes in its cluster.
	state, size string
	// changes are those of the membership of the cluster so far.
	changes int
}

func galeraStatusOf(ctx context.Context, pod corev1.Pod) (galeraStatus, error) {
	var status galeraStatus
	ctx, cancel := context.WithTimeout(ctx, 5*attempt)
	defer cancel()
	database, err := dialMariaDB(galera().addressOf(pod))
	if err != nil {
		return status, err
	}
	defer func() { _ = database.Close() }()
	for name, value := range map[string]any{"local_state": &status.state, "cluster_size": &status.size, "cluster_conf_id": &status.changes} {
		row := database.QueryRowContext(ctx, "SELECT variable_value FROM information_schema.global_status WHERE variable_name = ?", "wsrep_"+name)
		if err := row.Scan(value); err != nil {
			return status, fmt.Errorf("read %s of %s: %w", name, pod.Name, err)
		}
	}
	return status, nil
}

// dialMariaDB connects to a node whose reads wait until it has applied what the cluster had acknowledged before.
func dialMariaDB(address string) (*sql.DB, error) {
	return dialSQL("mysql", "app:change-me@tcp("+address+")/app?interpolateParams=true&wsrep_sync_wait=1")
}
