// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
)

// runHaproxy scales in, updates and drains proxies while clients keep connections for some time. The clients count the connections
// that ended before they closed them: none, until proxies are deleted in spite of the guard.
func runHaproxy(s *suite) {
	v := &servers{suite: s, image: "docker.io/seamark/recipe-haproxy", idle: "proxy-idle", counted: `{"connections":%s}`}
	v.run()
	v.keepsOneIdle()
	v.hadCosts("0")
	s.connectedAtTheEnd(v)
	v.marked(6, "v1")

	s.Kubectl("patch", "service", "haproxy", "--type=merge", "-p", `{"spec": {"type": "NodePort"}}`)
	clients := s.connect(s.nodePort("haproxy"), 6)
	v.hadCosts("1", "2")
	v.replace()
	s.Logf("connections: %d ended by the client, %d not established", clients.closed.Load(), clients.refused.Load())
	expect.Equal(s, "connections that were cut", 0, clients.cut.Load())
	if clients.closed.Load() == 0 {
		s.Errorf("no client has closed its connection")
	}
	v.kill(func() int { return int(clients.cut.Load()) })
	clients.stop()
	v.end()
}

// keepsOneIdle waits until some servers are idle, and their budget lets all of them go except one.
func (v *servers) keepsOneIdle() {
	v.Helper()
	v.Eventually("a budget of the idle servers", func(ctx context.Context) error {
		var budget policyv1.PodDisruptionBudget
		if err := v.Client.Get(ctx, v.Key(v.recipe+"-idle"), &budget); err != nil {
			return err
		}
		idle, allowed := budget.Status.CurrentHealthy, budget.Status.DisruptionsAllowed
		return await.ErrorIf(idle < 2 || allowed != idle-1, "of %d idle servers, %d may be evicted", idle, allowed)
	})
}

// connectedAtTheEnd connects to a proxy that is marked as idle and deletes it before the mark changes: the connection outlives the
// listener, and the proxy ends with it.
func (s *suite) connectedAtTheEnd(v *servers) {
	s.Helper()
	var client *http1
	var proxy corev1.Pod
	s.Eventually("deletion of a proxy with a new connection", func(ctx context.Context) error {
		pods, err := s.pods(ctx, v.idle+"=true")
		if err != nil {
			return err
		}
		if len(pods) == 0 {
			return errors.New("no proxy is idle")
		}
		proxy = pods[0]
		if client, err = dialHTTP(ctx, proxy.Status.PodIP+":8080"); err != nil {
			return err
		}
		if err = s.Client.Delete(ctx, &proxy); err != nil {
			_ = client.Close()
		}
		return err
	})
	defer func() { _ = client.Close() }()
	s.Eventually("a proxy that takes no connections", func(ctx context.Context) error {
		expect.NoErrorf(s, client.get(), "use a connection of a proxy that ends")
		other, err := dialHTTP(ctx, proxy.Status.PodIP+":8080")
		if err == nil {
			_ = other.Close()
		}
		return await.ErrorIf(err == nil, "it still takes them")
	})
	expect.NoErrorf(s, client.get(), "use a connection of a proxy that takes no more")
	_ = client.Close()
	s.Eventually("the end of the proxy", func(ctx context.Context) error {
		pods, err := s.pods(ctx, "app="+v.recipe)
		for _, pod := range pods {
			if pod.UID == proxy.UID {
				return errors.New("it is still there")
			}
		}
		return err
	})
}

// clients keep connections, and count how they ended: by the client, or before that. A connection counts from its first answer.
type clients struct {
	closed, cut, refused atomic.Int64
	stop                 func()
}

// connect starts clients that use an address until they are stopped, or the test ends. Each connects, sends a request each half second
// for 5 to 15 seconds, closes the connection, and comes back after as long a time.
func (s *suite) connect(address string, count int) *clients {
	s.Helper()
	s.Eventually("the first connection", func(ctx context.Context) error {
		client, err := dialHTTP(ctx, address)
		if err == nil {
			_ = client.Close()
		}
		return err
	})
	ctx, cancel := context.WithCancel(s.Context())
	var running sync.WaitGroup
	c := &clients{stop: func() { cancel(); running.Wait() }}
	s.Cleanup(c.stop)
	for range count {
		running.Go(func() {
			for ctx.Err() == nil {
				c.visit(ctx, address)
				pause(ctx, stay())
			}
		})
	}
	return c
}

func (c *clients) visit(ctx context.Context, address string) {
	client, err := dialHTTP(ctx, address)
	if err != nil {
		c.refused.Add(1)
		return
	}
	defer func() { _ = client.Close() }()
	for end := time.Now().Add(stay()); time.Now().Before(end) && ctx.Err() == nil; pause(ctx, time.Second/2) {
		if client.get() != nil {
			c.cut.Add(1)
			return
		}
	}
	c.closed.Add(1)
}

// stay is between 5 and 15 seconds.
func stay() time.Duration { return 5*time.Second + rand.N(10*time.Second) }

func pause(ctx context.Context, wait time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(wait):
	}
}

// http1 is a connection for requests of HTTP.
type http1 struct {
	net.Conn
	reader *bufio.Reader
}

// dialHTTP connects to an address, and gets an answer.
func dialHTTP(ctx context.Context, address string) (*http1, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*attempt)
	defer cancel()
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	client := &http1{Conn: connection, reader: bufio.NewReader(connection)}
	if err := client.get(); err != nil {
		_ = client.Close()
		return nil, err
	}
	return client, nil
}

func (h *http1) get() error {
	if err := h.SetDeadline(time.Now().Add(15 * attempt)); err != nil {
		return fmt.Errorf("set deadline: %w", err)
	}
	if _, err := io.WriteString(h, "GET / HTTP/1.1\r\nHost: recipe\r\n\r\n"); err != nil {
		return fmt.Errorf("send a request: %w", err)
	}
	answer, err := http.ReadResponse(h.reader, nil)
	if err != nil {
		return fmt.Errorf("read an answer: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	var body strings.Builder
	if _, err := io.Copy(&body, answer.Body); err != nil {
		return fmt.Errorf("read an answer: %w", err)
	}
	return await.ErrorIf(body.String() != "hello", "the answer is %q", body.String())
}
