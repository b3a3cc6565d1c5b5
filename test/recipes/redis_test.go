// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/expect"
)

const redisImage = "docker.io/seamark/recipe-redis"

// redis updates three replicas while a client writes to the pod with the label of the primary: the replicas are updated
// first, and one failover moves the role. Then it cuts the primary off, which continues to believe that it has the role.
func redis(s *suite) {
	s.apply()
	s.atMostOne("role", "primary")
	before := s.redisIsAtRest(redisImage + ":v1")
	updates := s.record(redisImage+":v2", "role")
	writer := s.writeToRedis()
	s.setImage("statefulsets.apps.kruise.io/redis", redisImage+":v2")
	after := s.redisIsAtRest(redisImage + ":v2")
	acked := writer.stop()

	names, roles := updates.updated()
	expect.Equal(s, "roles in the order of the updates", []string{"replica", "replica", "primary"}, roles)
	expect.Equal(s, "the pod that is updated last", before.primary, names[len(names)-1])
	if after.epoch != before.epoch+1 || after.primary == before.primary {
		s.Errorf("primary %s of epoch %d became %s of epoch %d, want another one and one failover", before.primary, before.epoch, after.primary, after.epoch)
	}
	s.Logf("%d writes were acknowledged, %d were not, the last one because of: %v", len(acked), writer.failed, writer.lastError)
	expect.Equal(s, "acknowledged writes that are lost", nil, missing(acked, s.readFromRedis(after.primary)))

	heal := s.cutOff(after.primary)
	// Two Sentinels are left. They may vote twice.
	slow.Success(s, "another pod has the label", func(ctx context.Context) error {
		pods, err := s.pods(ctx, "role=primary")
		if err != nil {
			return err
		}
		return await.ErrorIf(len(pods) == 0 || pods[0].Name == after.primary, "pods %v", len(pods))
	})
	claim, err := s.exec(s.Context(), after.primary, "redis", "redis-cli", "role")
	cluster.Must(s, err)
	if !strings.HasPrefix(claim, "master") {
		s.Errorf("the pod that is cut off has the role %q, want a split brain", claim)
	}
	heal()
	healed := s.redisIsAtRest(redisImage + ":v2")
	if healed.primary == after.primary || healed.epoch <= after.epoch {
		s.Errorf("primary %s of epoch %d, want another one than %s of epoch %d", healed.primary, healed.epoch, after.primary, after.epoch)
	}
}

// claim is the primary and its epoch, as each Sentinel reports them.
type claim struct {
	primary string
	epoch   int
}

// redisIsAtRest waits until the pods are ready with the image, the Sentinels agree about the primary, and the labels show it.
func (s *suite) redisIsAtRest(image string) claim {
	s.Helper()
	var found claim
	s.settled("app=redis", image, 3, func(ctx context.Context, pods []corev1.Pod) error {
		found = claim{epoch: -1}
		var address string
		for _, pod := range pods {
			fields, err := callRedis(ctx, pod.Status.PodIP+":26379", "SENTINEL", "MASTER", "main")
			if err != nil {
				return err
			}
			master := map[string]string{}
			for i := 0; i+1 < len(fields); i += 2 {
				master[fields[i]] = fields[i+1]
			}
			epoch, err := strconv.Atoi(master["config-epoch"])
			if err != nil {
				return fmt.Errorf("epoch of %s: %w", pod.Name, err)
			}
			if address != "" && (address != master["ip"] || found.epoch != epoch) {
				return fmt.Errorf("Sentinel of %s knows %s of epoch %d, others %s of epoch %d", pod.Name, master["ip"], epoch, address, found.epoch)
			}
			address, found.epoch = master["ip"], epoch
			role, err := callRedis(ctx, pod.Status.PodIP+":6379", "ROLE")
			if err != nil {
				return err
			}
			want := map[string]string{"master": "primary", "slave": "replica"}[role[0]]
			if pod.Labels["role"] != want {
				return fmt.Errorf("pod %s is a %s and has the label %q", pod.Name, want, pod.Labels["role"])
			}
			if want == "primary" {
				if found.primary != "" {
					return fmt.Errorf("%s and %s are primaries", found.primary, pod.Name)
				}
				found.primary = pod.Name
			}
		}
		return await.ErrorIf(found.primary == "", "no pod is the primary")
	})
	return found
}

// writeToRedis writes a key per number, to the pod with the label of the primary.
func (s *suite) writeToRedis() *writer {
	s.Helper()
	return s.write(func(ctx context.Context, number int) error {
		pods, err := s.pods(ctx, "role=primary")
		if err != nil {
			return err
		}
		if len(pods) != 1 {
			return fmt.Errorf("%d pods have the label of the primary", len(pods))
		}
		_, err = callRedis(ctx, pods[0].Status.PodIP+":6379", "SET", prefix+strconv.Itoa(number), "x")
		return err
	})
}

// readFromRedis returns the numbers of the keys.
func (s *suite) readFromRedis(pod string) map[int]bool {
	s.Helper()
	keys, err := callRedis(s.Context(), s.Pod(pod).Status.PodIP+":6379", "KEYS", prefix+"*")
	cluster.Must(s, err)
	return numbers(s, keys)
}

// callRedis sends a command to Redis or Sentinel, and returns the strings of the answer.
func callRedis(ctx context.Context, address string, command ...string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect to Redis: %w", err)
	}
	defer func() { _ = connection.Close() }()
	deadline, _ := ctx.Deadline()
	if err := connection.SetDeadline(deadline); err != nil {
		return nil, fmt.Errorf("set deadline: %w", err)
	}
	if _, err := fmt.Fprintf(connection, "%s\r\n", strings.Join(command, " ")); err != nil {
		return nil, fmt.Errorf("send to Redis: %w", err)
	}
	answer, err := readReply(bufio.NewReader(connection))
	if err != nil {
		return nil, fmt.Errorf("redis %s: %w", command[0], err)
	}
	return answer, nil
}

// readReply reads a reply of the protocol RESP2, and returns the strings and numbers in it.
func readReply(from *bufio.Reader) ([]string, error) {
	line, err := from.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSpace(line)
	if line == "" {
		return nil, errors.New("empty reply")
	}
	kind, rest := line[0], line[1:]
	if kind == '-' {
		return nil, errors.New(rest)
	}
	size, err := strconv.Atoi(rest)
	if kind != '$' && kind != '*' {
		return []string{rest}, nil
	}
	if err != nil || size < 0 {
		return nil, err
	}
	if kind == '$' {
		text := make([]byte, size+2)
		_, err := io.ReadFull(from, text)
		return []string{string(text[:size])}, err
	}
	var all []string
	for range size {
		item, err := readReply(from)
		if err != nil {
			return nil, err
		}
		all = append(all, item...)
	}
	return all, nil
}
