// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeload is the node around an agent that is measured: a container runtime with many
// pods, and the servers of these pods. It runs in a process of its own, so that what it uses does
// not count as the agent's. The process of the benchmark runs its own program with the arguments
// of Main:
//
//	serve --socket=/folder/cri.sock --pods=110
//
// serves until its standard input ends. It prints a line of JSON with its ports when it is ready,
// and a line with the number of runtime calls for each line that it reads.
//
//	floor --kind=tcp --target=127.0.0.1:1 --rate=110 --for=30s
//
// does the least that probes of one kind can do, at the same rate: net.Dial and Close, http.Get
// without keep-alive, or an ExecSync call. It prints how many it did and the CPU time they took.
package nodeload

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Argument is the first argument of a program that runs Main with the others.
const Argument = "nodeload"

// Main runs one of the commands of the package comment until it is done.
func Main(args []string, in io.Reader, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("command: required value: must be serve or floor")
	}
	switch args[0] {
	case "serve":
		return serve(args[1:], in, out)
	case "floor":
		return floor(args[1:], out)
	default:
		return fmt.Errorf("command: %q is invalid: must be serve or floor", args[0])
	}
}

// Ready is what serve prints when it accepts connections.
type Ready struct {
	// HTTP and TCP are the ports of the pods' servers. They accept connections on every address
	// of the loopback network.
	HTTP int `json:"http"`
	TCP  int `json:"tcp"`
}

func serve(args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	socket := flags.String("socket", "", "path of the runtime's socket")
	pods := flags.Int("pods", 0, "number of pods")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r := &runtime{pods: *pods, calls: map[string]int{}}
	listener, err := net.Listen("unix", *socket)
	if err != nil {
		return fmt.Errorf("listen on --socket=%q: %w", *socket, err)
	}
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, r)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	var ready Ready
	web, err := net.Listen("tcp4", ":0")
	if err != nil {
		return fmt.Errorf("listen for HTTP probes: %w", err)
	}
	ready.HTTP = web.Addr().(*net.TCPAddr).Port
	go func() { _ = http.Serve(web, http.HandlerFunc(answer)) }() //nolint:gosec // its only clients are probes
	plain, err := net.Listen("tcp4", ":0")
	if err != nil {
		return fmt.Errorf("listen for TCP probes: %w", err)
	}
	ready.TCP = plain.Addr().(*net.TCPAddr).Port
	go accept(plain)

	encoder := json.NewEncoder(out)
	if err := encoder.Encode(ready); err != nil {
		return fmt.Errorf("write ports: %w", err)
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if err := encoder.Encode(r.counted()); err != nil {
			return fmt.Errorf("write runtime calls: %w", err)
		}
	}
	return nil
}

func answer(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }

// accept closes each connection when its client does.
func accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}()
	}
}
