// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

func etcd() program {
	return program{
		recipe: "etcd", title: "etcd", name: "etcd", image: "docker.io/seamark/recipe-etcd",
		primary: "role=leader", other: "follower=true", port: 2379,
		standing: etcdStanding, open: openEtcd, read: readEtcd,
	}
}

// runEtcd updates three members. Then the leader is cut off from both followers: without a quorum, the guard holds it. Then a follower
// loses its data, and is replaced as a member: it gets all writes again.
func runEtcd(s *suite) {
	after, writer := s.upgrade(etcd())
	s.leavesNoFollower(after.primary)
	after = s.atRest(etcd(), "v2")
	lost := s.others(etcd(), after.primary)[0]
	address := "http://" + s.clusterIP(lost) + ":2380"
	s.Kubectl("delete", "pod", lost)
	var id string
	members, err := s.exec(s.Context(), after.primary, "etcd", "etcdctl", "member", "list")
	cluster.Must(s, err)
	for line := range strings.Lines(members) {
		if strings.Contains(line, ", "+lost+", ") {
			id, _, _ = strings.Cut(line, ",")
		}
	}
	_, err = s.exec(s.Context(), after.primary, "etcd", "etcdctl", "member", "remove", id)
	cluster.Must(s, err)
	// etcd refuses it until the other members have been connected for five seconds.
	s.Eventually("the member is added", func(ctx context.Context) error {
		_, err := s.exec(ctx, after.primary, "etcd", "etcdctl", "member", "add", lost, "--peer-urls="+address)
		return err
	})
	s.atRest(etcd(), "v2")
	s.nothingLost(etcd(), writer, lost)
}

// leavesNoFollower cuts the leader off from the others until it does not lead any more: it must not be marked as a follower, which may
// be stopped.
func (s *suite) leavesNoFollower(leader string) {
	s.Helper()
	for _, other := range s.others(etcd(), leader) {
		defer s.cutOff(other)()
	}
	s.Eventually("a member without a role", func(context.Context) error {
		pod := s.Pod(leader)
		return await.ErrorIf(etcd().role(pod) != "unknown", "%s has the labels %v", leader, pod.Labels)
	})
	out, err := s.TryKubectl(s.Context(), "delete", "pod", leader, "--dry-run=server")
	if err == nil || !strings.Contains(out+err.Error(), "etcd-leader guards it") {
		s.Errorf("deletion of a member without a quorum: error %v, want one of the guard: %s", err, out)
	}
}

// etcdStanding returns the leader and its term.
func etcdStanding(ctx context.Context, pods []corev1.Pod) (standing, error) {
	var found standing
	for _, pod := range pods {
		// Numbers of 64 bits are strings.
		var status struct {
			Header struct {
				Member string `json:"member_id"`
				Term   string `json:"raft_term"`
			}
			Leader string
		}
		if err := callEtcd(ctx, http.DefaultClient, etcd().addressOf(pod), "/v3/maintenance/status", nil, &status); err != nil {
			return standing{}, err
		}
		term, err := strconv.Atoi(status.Header.Term)
		if err != nil {
			return standing{}, fmt.Errorf("term of %s: %w", pod.Name, err)
		}
		if status.Leader == status.Header.Member {
			found.primary = pod.Name
		}
		if found.elections != 0 && found.elections != term {
			return standing{}, fmt.Errorf("pod %s is in term %d, others in %d", pod.Name, term, found.elections)
		}
		found.elections = term
	}
	return found, await.ErrorIf(found.primary == "", "no member leads")
}

// callEtcd sends a request to a member, as etcd's gateway for JSON takes it.
func callEtcd(ctx context.Context, client *http.Client, address, path string, request, response any) error {
	content, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*attempt)
	defer cancel()
	call, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+path, bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("create request: %w", err)
	}
	answer, err := client.Do(call)
	if err != nil {
		return fmt.Errorf("call etcd: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("call etcd at %s: %s", path, answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(response); err != nil {
		return fmt.Errorf("read the answer of etcd: %w", err)
	}
	return nil
}

// etcdSession keeps a connection to one address.
type etcdSession struct {
	http.Client
	address string
}

func openEtcd(_ context.Context, address string) (session, error) {
	return &etcdSession{Client: http.Client{Transport: &http.Transport{}}, address: address}, nil
}

func (e *etcdSession) write(ctx context.Context, number int) error {
	pair := map[string][]byte{"key": []byte(prefix + strconv.Itoa(number)), "value": []byte("x")}
	return callEtcd(ctx, &e.Client, e.address, "/v3/kv/put", pair, &struct{}{})
}

func (e *etcdSession) Close() error {
	e.CloseIdleConnections()
	return nil
}

func readEtcd(ctx context.Context, address string) (map[int]bool, error) {
	var all struct {
		Pairs []struct {
			Key []byte `json:"key"`
		} `json:"kvs"`
	}
	// The end of the range is the first key that does not have the prefix.
	span := map[string]any{"key": []byte(prefix), "range_end": []byte("recipe0"), "keys_only": true}
	if err := callEtcd(ctx, http.DefaultClient, address, "/v3/kv/range", span, &all); err != nil {
		return nil, err
	}
	keys := make([]string, len(all.Pairs))
	for i, pair := range all.Pairs {
		keys[i] = string(pair.Key)
	}
	return numbers(keys)
}
