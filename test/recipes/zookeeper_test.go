// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/test/await"
)

func zookeeper() program {
	return program{
		recipe: "zookeeper", title: "ZooKeeper", name: "zookeeper", image: "docker.io/seamark/recipe-zookeeper",
		primary: "leader=true", other: "leader=false", shared: true, port: 2181,
		standing: zookeeperStanding, open: openZookeeper, read: readZookeeper,
	}
}

// runZookeeper updates three members.
func runZookeeper(s *suite) {
	after, writer := s.upgrade(zookeeper())
	s.nothingLost(zookeeper(), writer, after.primary)
}

// zookeeperStanding returns the leader and its epoch, which is the upper half of the number of its last transaction.
func zookeeperStanding(ctx context.Context, pods []corev1.Pod) (standing, error) {
	var found standing
	for _, pod := range pods {
		var status struct {
			Error string
			Stats struct {
				State string `json:"server_state"`
				Last  int    `json:"last_processed_zxid"`
			} `json:"server_stats"`
		}
		if err := getJSON(ctx, "http://"+pod.Status.PodIP+":8080/commands/srvr", &status); err != nil {
			return standing{}, fmt.Errorf("ask ZooKeeper of %s: %w", pod.Name, err)
		}
		switch {
		case status.Error != "":
			return standing{}, fmt.Errorf("member %s: %s", pod.Name, status.Error)
		case status.Stats.State == "leader" && found.primary != "":
			return standing{}, fmt.Errorf("%s and %s lead", found.primary, pod.Name)
		case status.Stats.State == "leader":
			found = standing{primary: pod.Name, elections: status.Stats.Last >> 32}
		}
	}
	return found, await.ErrorIf(found.primary == "", "no member leads")
}

// zookeeperSession is a connection to a member.
type zookeeperSession struct {
	net.Conn
	requests int32
}

// The requests and errors of ZooKeeper that the test knows.
const (
	zookeeperCreate, zookeeperChildren = int32(1), int32(8)
	zookeeperExists                    = int32(-110)
	zookeeperFolder                    = "/recipe"
)

func openZookeeper(ctx context.Context, address string) (session, error) {
	z, err := dialZookeeper(ctx, address)
	if err != nil {
		return nil, err
	}
	if err := z.create(ctx, zookeeperFolder); err != nil {
		_ = z.Close()
		return nil, err
	}
	return z, nil
}

func dialZookeeper(ctx context.Context, address string) (*zookeeperSession, error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect to ZooKeeper: %w", err)
	}
	z := &zookeeperSession{Conn: connection}
	// Version, last transaction, timeout of the session in milliseconds, session, password.
	if _, err := z.send(ctx, int32(0), int64(0), int32(10_000), int64(0), string(make([]byte, 16))); err != nil {
		_ = z.Close()
		return nil, err
	}
	return z, nil
}

// send sends the values as a packet, and returns the packet that answers.
func (z *zookeeperSession) send(ctx context.Context, values ...any) ([]byte, error) {
	deadline, _ := ctx.Deadline()
	if err := z.SetDeadline(deadline); err != nil {
		return nil, fmt.Errorf("set deadline: %w", err)
	}
	packet := bytes.NewBuffer(make([]byte, 4))
	for _, value := range values {
		if text, is := value.(string); is {
			value = append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...) //nolint:gosec // Short.
		}
		if err := binary.Write(packet, binary.BigEndian, value); err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
	}
	binary.BigEndian.PutUint32(packet.Bytes(), uint32(packet.Len()-4)) //nolint:gosec // Short.
	if _, err := z.Write(packet.Bytes()); err != nil {
		return nil, fmt.Errorf("send to ZooKeeper: %w", err)
	}
	var size uint32
	if err := binary.Read(z, binary.BigEndian, &size); err != nil {
		return nil, fmt.Errorf("read the answer of ZooKeeper: %w", err)
	}
	answer := make([]byte, size)
	if _, err := io.ReadFull(z, answer); err != nil {
		return nil, fmt.Errorf("read the answer of ZooKeeper: %w", err)
	}
	return answer, nil
}

// call sends a request, and returns the error and the content of the answer.
func (z *zookeeperSession) call(ctx context.Context, kind int32, values ...any) (int32, []byte, error) {
	z.requests++
	answer, err := z.send(ctx, append([]any{z.requests, kind}, values...)...)
	if err != nil {
		return 0, nil, err
	}
	var header struct {
		Request     int32
		Transaction int64
		Error       int32
	}
	n, err := binary.Decode(answer, binary.BigEndian, &header)
	if err != nil || header.Request != z.requests {
		return 0, nil, fmt.Errorf("request %d has the answer %+v: %w", z.requests, header, err)
	}
	return header.Error, answer[n:], nil
}

// create creates a node, unless it exists.
func (z *zookeeperSession) create(ctx context.Context, path string) error {
	// One entry of the access control list, with all rights, and no flags.
	code, _, err := z.call(ctx, zookeeperCreate, path, "x", int32(1), int32(31), "world", "anyone", int32(0))
	if err == nil && code != 0 && code != zookeeperExists {
		err = fmt.Errorf("create %s: error %d of ZooKeeper", path, code)
	}
	return err
}

func (z *zookeeperSession) write(ctx context.Context, number int) error {
	return z.create(ctx, zookeeperFolder+"/"+strconv.Itoa(number))
}

func readZookeeper(ctx context.Context, address string) (map[int]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*attempt)
	defer cancel()
	z, err := dialZookeeper(ctx, address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = z.Close() }()
	code, content, err := z.call(ctx, zookeeperChildren, zookeeperFolder, false)
	if err == nil && code != 0 {
		err = fmt.Errorf("list %s: error %d of ZooKeeper", zookeeperFolder, code)
	}
	if err != nil {
		return nil, err
	}
	// Each name follows its length, after the number of all.
	var names []string
	for content = content[4:]; len(content) > 0; {
		end := 4 + binary.BigEndian.Uint32(content)
		names, content = append(names, string(content[4:end])), content[end:]
	}
	return numbers(names)
}
