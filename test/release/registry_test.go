// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/vishvananda/netns"
)

// startRegistry starts a registry and returns its address, which is a port of 127.0.0.1, on this machine and in the
// network namespace of each node of a cluster: container runtimes use plain HTTP for a registry at this address without
// any configuration. It stops at the end of the test.
func startRegistry(t *testing.T, cluster string) string {
	t.Helper()
	here, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listeners := []net.Listener{here}
	records, err := filepath.Glob(filepath.Join(cluster, "run", "containerd-*.pid.json"))
	if err != nil || len(records) == 0 {
		t.Fatalf("find the nodes of the cluster in %s: %d found, error %v: run `make test-release-install`", cluster, len(records), err)
	}
	for _, record := range records {
		there, err := listenAt(record, here.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, there)
	}
	server := &http.Server{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	stopped := make(chan error, len(listeners))
	for _, listener := range listeners {
		go func() { stopped <- server.Serve(listener) }()
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		for range listeners {
			if err := <-stopped; !errors.Is(err, http.ErrServerClosed) {
				t.Error(err)
			}
		}
	})
	return here.Addr().String()
}

// listenAt listens in the network namespace of the process that a record of the cluster names.
func listenAt(record, address string) (net.Listener, error) {
	text, err := os.ReadFile(record)
	if err != nil {
		return nil, fmt.Errorf("find a node: %w", err)
	}
	var process struct{ PID int }
	if err := json.Unmarshal(text, &process); err != nil {
		return nil, fmt.Errorf("read %s: %w", record, err)
	}
	var listener net.Listener
	done := make(chan error)
	go func() {
		// The thread is not unlocked, so that it ends with the goroutine and is not used by others.
		runtime.LockOSThread()
		done <- func() error {
			space, err := netns.GetFromPath(filepath.Join("/proc", strconv.Itoa(process.PID), "ns", "net"))
			if err != nil {
				return fmt.Errorf("open the network namespace of %s: %w", record, err)
			}
			defer space.Close()
			if err := netns.Set(space); err != nil {
				return fmt.Errorf("enter the network namespace of %s: %w", record, err)
			}
			listener, err = net.Listen("tcp", address)
			return err
		}()
	}()
	err = <-done
	return listener, err
}
