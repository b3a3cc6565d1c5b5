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

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/expect"
)

func redis() program {
	return program{
		recipe: "redis", title: "Redis with Sentinel", name: "redis", image: "docker.io/seamark/recipe-redis",
		primary: "role=primary", other: "replica=true", port: 6379,
		standing: redisStanding, open: openRedis, read: readRedis,
	}
}

// runRedis updates three replicas. Then it cuts the primary off, which continues to believe that it has the role, and deletes the
// primary with its data: first as a drain does, and then without time to hand its role over.
func runRedis(s *suite) {
	after, writer := s.upgrade(redis())
	s.nothingLost(redis(), writer, after.primary)

	// What the probe prints is the term of exclusive.
	printed, err := s.exec(s.Context(), after.primary, "redis", "sh", "-c", "redis-cli -p 26379 --json sentinel master main | sed -nf /data/primary.sed")
	cluster.Must(s, err)
	expect.Equal(s, "output of the probe", fmt.Sprintf("{\"epoch\":%d}\n", after.elections), printed)

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
	healed := s.atRest(redis(), "v2")
	if healed.primary == after.primary || healed.elections <= after.elections {
		s.Errorf("primary %s of epoch %d, want another one than %s of epoch %d", healed.primary, healed.elections, after.primary, after.elections)
	}

	const writes = 1_000_000
	writer = s.write(redis(), writes, s.labelled(redis()))
	replaced := s.deletePrimary(healed)
	s.nothingLost(redis(), writer, replaced.primary)
	last := s.deletePrimary(replaced, "--grace-period=0", "--force")
	// Redis replicates asynchronously, but these writes are older than a second.
	s.nothingLost(redis(), writer, last.primary)
}

// deletePrimary deletes the pod of the primary in spite of the guard, and waits until another one has the role after one failover.
func (s *suite) deletePrimary(before standing, flags ...string) standing {
	s.Helper()
	s.Kubectl("label", "pod", before.primary, "seamark.dev/guard-exempt=test")
	s.Kubectl(append([]string{"delete", "pod", before.primary}, flags...)...)
	after := s.atRest(redis(), "v2")
	if after.primary == before.primary || after.elections != before.elections+1 {
		s.Errorf("primary %s of epoch %d, want another one than %s of epoch %d after one failover",
			after.primary, after.elections, before.primary, before.elections)
	}
	return after
}

// redisStanding returns the primary and its epoch, as each Sentinel reports them.
func redisStanding(ctx context.Context, pods []corev1.Pod) (standing, error) {
	found := standing{elections: -1}
	var address string
	for _, pod := range pods {
		fields, err := callRedis(ctx, pod.Status.PodIP+":26379", "SENTINEL", "MASTER", "main")
		if err != nil {
			return standing{}, err
		}
		master := map[string]string{}
		for i := 0; i+1 < len(fields); i += 2 {
			master[fields[i]] = fields[i+1]
		}
		epoch, err := strconv.Atoi(master["config-epoch"])
		if err != nil {
			return standing{}, fmt.Errorf("epoch of %s: %w", pod.Name, err)
		}
		if address != "" && (address != master["ip"] || found.elections != epoch) {
			return standing{}, fmt.Errorf("Sentinel of %s knows %s of epoch %d, others %s of epoch %d", pod.Name, master["ip"], epoch, address, found.elections)
		}
		address, found.elections = master["ip"], epoch
		role, err := callRedis(ctx, redis().addressOf(pod), "ROLE")
		switch {
		case err != nil:
			return standing{}, err
		case role[0] == "master" && found.primary != "":
			return standing{}, fmt.Errorf("%s and %s are primaries", found.primary, pod.Name)
		case role[0] == "master":
			found.primary = pod.Name
		case role[3] != "connected":
			return standing{}, fmt.Errorf("replica %s is not connected", pod.Name)
		}
	}
	return found, await.ErrorIf(found.primary == "", "no pod is the primary")
}

// redisSession is a connection to Redis or Sentinel.
type redisSession struct {
	net.Conn
	reader *bufio.Reader
}

func openRedis(ctx context.Context, address string) (session, error) { return dialRedis(ctx, address) }

func dialRedis(ctx context.Context, address string) (*redisSession, error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect to Redis: %w", err)
	}
	return &redisSession{Conn: connection, reader: bufio.NewReader(connection)}, nil
}

func (r *redisSession) write(ctx context.Context, number int) error {
	_, err := r.call(ctx, "SET", prefix+strconv.Itoa(number), "x")
	return err
}

// call sends a command, and returns the strings of the answer.
func (r *redisSession) call(ctx context.Context, command ...string) ([]string, error) {
	deadline, _ := ctx.Deadline()
	if err := r.SetDeadline(deadline); err != nil {
		return nil, fmt.Errorf("set deadline: %w", err)
	}
	if _, err := fmt.Fprintf(r, "%s\r\n", strings.Join(command, " ")); err != nil {
		return nil, fmt.Errorf("send to Redis: %w", err)
	}
	answer, err := readReply(r.reader)
	if err != nil {
		return nil, fmt.Errorf("redis %s: %w", command[0], err)
	}
	return answer, nil
}

func readRedis(ctx context.Context, address string) (map[int]bool, error) {
	keys, err := callRedis(ctx, address, "KEYS", prefix+"*")
	if err != nil {
		return nil, err
	}
	return numbers(keys)
}

// callRedis connects to Redis or Sentinel for one command.
func callRedis(ctx context.Context, address string, command ...string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*attempt)
	defer cancel()
	session, err := dialRedis(ctx, address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = session.Close() }()
	return session.call(ctx, command...)
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
