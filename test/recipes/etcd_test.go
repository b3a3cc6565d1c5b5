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
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/expect"
)

const etcdImage = "docker.io/seamark/recipe-etcd"

// etcd updates three members while a client writes. The followers are updated first, the leader changes once, and no write is
// lost that etcd has acknowledged.
func etcd(s *suite) {
	s.apply()
	s.atMostOne("role", "leader")
	before := s.etcdIsAtRest(etcdImage + ":v1")
	updates := s.record(etcdImage+":v2", "role")
	writer := s.writeToEtcd()
	s.setImage("statefulsets.apps.kruise.io/etcd", etcdImage+":v2")
	after := s.etcdIsAtRest(etcdImage + ":v2")
	acked := writer.stop()

	names, roles := updates.updated()
	expect.Equal(s, "roles in the order of the updates", []string{"follower", "follower", "leader"}, roles)
	expect.Equal(s, "the member that is updated last", before.leader, names[len(names)-1])
	if after.term != before.term+1 || after.leader == before.leader {
		s.Errorf("leader %s in term %d became %s in term %d, want another one in the next term", before.leader, before.term, after.leader, after.term)
	}
	s.Logf("%d writes were acknowledged, %d were not, the last one because of: %v", len(acked), writer.failed, writer.lastError)
	expect.Equal(s, "acknowledged writes that are lost", nil, missing(acked, s.readFromEtcd()))
}

// leadership is the leader of etcd and its term, as each member reports them.
type leadership struct {
	leader string
	term   int
}

// etcdIsAtRest waits until the members are ready with the image, agree about the leader, and have labels that show it.
func (s *suite) etcdIsAtRest(image string) leadership {
	s.Helper()
	var found leadership
	s.settled("app=etcd", image, 3, func(ctx context.Context, pods []corev1.Pod) error {
		found = leadership{}
		for _, pod := range pods {
			status, err := etcdStatusOf(ctx, pod)
			if err != nil {
				return err
			}
			term, err := strconv.Atoi(status.Header.Term)
			if err != nil {
				return fmt.Errorf("term of %s: %w", pod.Name, err)
			}
			want := "follower"
			if status.Leader == status.Header.Member {
				want, found.leader = "leader", pod.Name
			}
			if pod.Labels["role"] != want {
				return fmt.Errorf("pod %s has the role %q, want %q", pod.Name, pod.Labels["role"], want)
			}
			if found.term != 0 && found.term != term {
				return fmt.Errorf("pod %s is in term %d, others in %d", pod.Name, term, found.term)
			}
			found.term = term
		}
		return await.ErrorIf(found.leader == "", "no member leads")
	})
	return found
}

// etcdStatus is the status of a member. Numbers of 64 bits are strings.
type etcdStatus struct {
	Header struct {
		Member string `json:"member_id"`
		Term   string `json:"raft_term"`
	}
	Leader string
}

func etcdStatusOf(ctx context.Context, pod corev1.Pod) (etcdStatus, error) {
	var status etcdStatus
	return status, callEtcd(ctx, pod.Status.PodIP, "/v3/maintenance/status", nil, &status)
}

// callEtcd sends a request to a member, as etcd's gateway for JSON takes it.
func callEtcd(ctx context.Context, address, path string, request, response any) error {
	content, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	call, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+":2379"+path, bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("create request: %w", err)
	}
	answer, err := http.DefaultClient.Do(call)
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

// writeToEtcd writes a key per number, to one member after the other.
func (s *suite) writeToEtcd() *writer {
	s.Helper()
	pods, err := s.pods(s.Context(), "app=etcd")
	cluster.Must(s, err)
	return s.write(func(ctx context.Context, number int) error {
		pair := map[string][]byte{"key": []byte(prefix + strconv.Itoa(number)), "value": []byte("x")}
		return callEtcd(ctx, pods[number%len(pods)].Status.PodIP, "/v3/kv/put", pair, &struct{}{})
	})
}

// readFromEtcd returns the numbers of the keys.
func (s *suite) readFromEtcd() map[int]bool {
	s.Helper()
	var all struct {
		Pairs []struct {
			Key []byte `json:"key"`
		} `json:"kvs"`
	}
	// The end of the range is the first key that does not have the prefix.
	span := map[string]any{"key": []byte(prefix), "range_end": []byte("recipe0"), "keys_only": true}
	cluster.Must(s, callEtcd(s.Context(), s.Pod("etcd-0").Status.PodIP, "/v3/kv/range", span, &all))
	keys := make([]string, len(all.Pairs))
	for i, pair := range all.Pairs {
		keys[i] = string(pair.Key)
	}
	return numbers(s, keys)
}
