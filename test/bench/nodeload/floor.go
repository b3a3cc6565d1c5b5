// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The kinds of floors.
const (
	KindTCP  = "tcp"
	KindHTTP = "http"
	KindExec = "exec"
)

// Floor is what floor prints.
type Floor struct {
	// Done is how many operations it did.
	Done int `json:"done"`
	// CPU is the CPU time that they took.
	CPU time.Duration `json:"cpu"`
}

// operation does the least that one run of a probe can do.
type operation func() error

func floor(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("floor", flag.ContinueOnError)
	kind := flags.String("kind", "", "tcp, http or exec")
	target := flags.String("target", "", "host:port, or the path of the runtime's socket")
	container := flags.String("container", floorContainer, "container in which commands are run")
	rate := flags.Float64("rate", 1, "operations per second")
	duration := flags.Duration("for", time.Second, "how long to measure")
	if err := flags.Parse(args); err != nil {
		return err
	}
	do, err := operationOf(*kind, *target, *container)
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return fmt.Errorf("--kind=%s --target=%q: %w", *kind, *target, err)
	}
	before := cpuTime()
	result := Floor{Done: repeat(do, *rate, *duration)}
	result.CPU = cpuTime() - before
	if err := json.NewEncoder(out).Encode(result); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// repeat starts an operation at each tick, each in its own goroutine, and returns their number.
func repeat(do operation, rate float64, duration time.Duration) int {
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

func operationOf(kind, target, container string) (operation, error) {
	switch kind {
	case KindTCP:
		return func() error {
			conn, err := net.Dial("tcp", target)
			if err != nil {
				return err
			}
			return conn.Close()
		}, nil
	case KindHTTP:
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		return func() error {
			response, err := client.Get("http://" + target + Path)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, response.Body)
			return errors.Join(err, response.Body.Close())
		}, nil
	case KindExec:
		conn, err := grpc.NewClient("unix://"+target, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, fmt.Errorf("--target=%q: %w", target, err)
		}
		client := runtimeapi.NewRuntimeServiceClient(conn)
		return func() error {
			_, err := client.ExecSync(context.Background(), &runtimeapi.ExecSyncRequest{
				ContainerId: container, Cmd: []string{Command}, Timeout: 1,
			})
			return err
		}, nil
	default:
		return nil, fmt.Errorf("--kind=%q is invalid: must be tcp, http or exec", kind)
	}
}

// cpuTime returns the CPU time that this process has used.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
