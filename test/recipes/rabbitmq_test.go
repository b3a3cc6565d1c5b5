// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/expect"
)

const (
	criticalLabel = "quorum-critical"
	rabbitmqQueue = "recipe"
)

func rabbitmq() program {
	return program{
		recipe: "rabbitmq", title: "RabbitMQ", name: "rabbitmq", image: "docker.io/seamark/recipe-rabbitmq", port: 5672,
		open: openRabbitmq, read: readRabbitmq,
	}
}

// runRabbitmq updates three nodes while a client publishes. As long as one of them is cut off, the others are critical for the quorum
// of a queue: they are neither evicted nor deleted, and no node is updated.
func runRabbitmq(s *suite) {
	p := rabbitmq()
	s.apply()
	s.spare(p, "v1")
	_, err := s.exec(s.Context(), "rabbitmq-0", "rabbitmq", "rabbitmqctl", "await_online_nodes", "3")
	cluster.Must(s, err)
	writer := s.write(p, 0, s.addresses(p, "app="+p.name))
	updates := s.record(p.image+":v2", criticalLabel)

	heal := s.cutOff("rabbitmq-2")
	slow.Success(s, "the node that is cut off has stopped, and all are critical", func(ctx context.Context) error {
		pods, err := s.pods(ctx, "app="+p.name)
		for _, pod := range pods {
			cut, ready := pod.Name == "rabbitmq-2", slices.ContainsFunc(pod.Status.Conditions, isReady)
			if critical := pod.Labels[criticalLabel]; critical != "true" || ready == cut {
				return fmt.Errorf("node %s has the label %s=%q, ready=%t", pod.Name, criticalLabel, critical, ready)
			}
		}
		return err
	})
	s.setImage("statefulsets.apps.kruise.io/rabbitmq", p.image+":v2")
	s.Eventually("an update that waits", func(ctx context.Context) error {
		status, err := s.TryKubectl(ctx, "get", "statefulsets.apps.kruise.io/rabbitmq", "-o", `jsonpath={.status.conditions[?(@.type=="PodsGuarded")].status}`)
		if err == nil && status != "True" {
			err = fmt.Errorf("the condition PodsGuarded is %q", status)
		}
		return err
	})
	for _, name := range []string{"rabbitmq-0", "rabbitmq-1"} {
		pod := s.Pod(name)
		if err := s.Client.SubResource("eviction").Create(s.Context(), pod, &policyv1.Eviction{}); !apierrors.IsTooManyRequests(err) {
			s.Errorf("eviction of %s: %v, want a refusal", name, err)
		}
		if err := s.Client.Delete(s.Context(), pod); !apierrors.IsForbidden(err) {
			s.Errorf("deletion of %s: %v, want a refusal", name, err)
		}
	}
	names, _ := updates.updated()
	expect.Equal(s, "nodes that are updated while others are critical", nil, names)

	heal()
	s.spare(p, "v2")
	names, critical := updates.updated()
	expect.Equal(s, "nodes in the order of the updates", []string{"rabbitmq-2", "rabbitmq-1", "rabbitmq-0"}, names)
	expect.Equal(s, "labels of the nodes when they were updated", []string{"false", "false", "false"}, critical)
	s.nothingLost(p, writer, "rabbitmq-0")
}

// spare waits until the nodes are ready with the tag of the image, and none is critical.
func (s *suite) spare(p program, tag string) {
	s.Helper()
	s.settled("app="+p.name, p.image+":"+tag, 3, func(_ context.Context, pods []corev1.Pod) error {
		for i := range pods {
			if got := pods[i].Labels[criticalLabel]; got != "false" {
				return fmt.Errorf("node %s has the label %s=%q", pods[i].Name, criticalLabel, got)
			}
		}
		return nil
	})
}

// rabbitmqSession is a connection whose channel confirms messages.
type rabbitmqSession struct {
	*amqp.Connection
	channel *amqp.Channel
}

func openRabbitmq(ctx context.Context, address string) (session, error) {
	return dialRabbitmq(ctx, address)
}

func dialRabbitmq(ctx context.Context, address string) (*rabbitmqSession, error) {
	connection, err := amqp.DialConfig("amqp://app:change-me-3@"+address+"/", amqp.Config{Dial: func(network, address string) (net.Conn, error) {
		connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if deadline, limited := ctx.Deadline(); err == nil && limited {
			err = connection.SetDeadline(deadline) // The client removes it when it is connected.
		}
		return connection, err
	}})
	if err != nil {
		return nil, fmt.Errorf("connect to RabbitMQ: %w", err)
	}
	r := &rabbitmqSession{Connection: connection}
	if r.channel, err = connection.Channel(); err == nil {
		_, err = r.channel.QueueDeclare(rabbitmqQueue, true, false, false, false, amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum})
	}
	if err == nil {
		err = r.channel.Confirm(false)
	}
	if err != nil {
		_ = r.Close()
		return nil, fmt.Errorf("declare a queue: %w", err)
	}
	return r, nil
}

func (r *rabbitmqSession) Close() error { return r.CloseDeadline(time.Now().Add(attempt)) }

func (r *rabbitmqSession) write(ctx context.Context, number int) error {
	message := amqp.Publishing{Body: []byte(strconv.Itoa(number))}
	confirmation, err := r.channel.PublishWithDeferredConfirmWithContext(ctx, "", rabbitmqQueue, false, false, message)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	confirmed, err := confirmation.WaitContext(ctx)
	if err == nil && !confirmed {
		err = errors.New("not confirmed")
	}
	return err
}

// readRabbitmq takes all messages.
func readRabbitmq(ctx context.Context, address string) (map[int]bool, error) {
	r, err := dialRabbitmq(ctx, address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	found := map[int]bool{}
	for {
		message, more, err := r.channel.Get(rabbitmqQueue, true)
		if err != nil || !more {
			return found, err
		}
		number, err := strconv.Atoi(string(message.Body))
		if err != nil {
			return nil, fmt.Errorf("read a message: %w", err)
		}
		found[number] = true
	}
}
