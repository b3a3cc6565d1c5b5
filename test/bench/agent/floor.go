// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

// FloorArgument is the first argument with which the benchmark starts itself to measure a floor in a
// process of its own, so that its processor time has nothing else.
const FloorArgument = "probe-floor"

const (
	// path is the path of HTTP probes.
	path = "/index.html"
	// command is the command of exec probes.
	command = "/bin/true"
)

// floor is what FloorMain prints.
type floor struct {
	// Done is how many operations it did.
	Done int `json:"done"`
	// CPU is the processor time that they took.
	CPU time.Duration `json:"cpu"`
}

// FloorMain does the least that probes of one kind can do, at the same rate: net.Dial and Close,
// http.Get without keep-alive, or an ExecSync call. It prints how many it did and the processor time.
func FloorMain(args []string) error {
	flags := flag.NewFlagSet(FloorArgument, flag.ContinueOnError)
	kind := flags.String("kind", "", "handler of the probe")
	target := flags.String("target", "", "host:port, or the path of the runtime's socket")
	rate := flags.Float64("rate", 1, "operations per second")
	duration := flags.Duration("for", time.Second, "how long to measure")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("parse arguments: %w", err)
	}
	do, err := operationOf(probing.Handler(*kind), *target)
	if err == nil {
		err = do()
	}
	if err != nil {
		return fmt.Errorf("--kind=%s --target=%q: %w", *kind, *target, err)
	}
	before := harness.CPUTime()
	result := floor{Done: repeat(do, *rate, *duration)}
	result.CPU = harness.CPUTime() - before
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		return fmt.Errorf("print floor: %w", err)
	}
	return nil
}

// repeat starts an operation at each tick, each in its own goroutine, and returns their number.
func repeat(do func() error, rate float64, duration time.Duration) int {
	ticks := time.NewTicker(time.Duration(float64(time.Second) / rate))
	defer ticks.Stop()
	var running sync.WaitGroup
	done := 0
	for end := time.After(duration); ; done++ {
		select {
		case <-ticks.C:
			running.Go(func() { _ = do() })
		case <-end:
			running.Wait()
			return done
		}
	}
}

// operationOf returns the least that one run of a probe can do.
func operationOf(kind probing.Handler, target string) (func() error, error) {
	switch kind {
	case probing.HandlerTCP:
		return func() error {
			conn, err := net.Dial("tcp", target)
			if err != nil {
				return err //nolint:wrapcheck // It names the address.
			}
			return conn.Close() //nolint:wrapcheck // It names the address.
		}, nil
	case probing.HandlerHTTP:
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		return func() error {
			response, err := client.Get("http://" + target + path)
			if err != nil {
				return err //nolint:wrapcheck // It names the URL.
			}
			_, err = io.Copy(io.Discard, response.Body)
			return errors.Join(err, response.Body.Close())
		}, nil
	case probing.HandlerExec:
		conn, err := grpc.NewClient("unix://"+target, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, fmt.Errorf("connect: %w", err)
		}
		client := runtimeapi.NewRuntimeServiceClient(conn)
		return func() error {
			_, err := client.ExecSync(context.Background(), &runtimeapi.ExecSyncRequest{ContainerId: "floor", Cmd: []string{command}, Timeout: 1})
			return err //nolint:wrapcheck // The caller names the target.
		}, nil
	default:
		return nil, errors.New("has no floor")
	}
}
