// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"encoding/binary"
	"net"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const mebibyte = 1 << 20

// bulkCodec sends answers of 16 MiB each of stdout and stderr without allocating them.
type bulkCodec struct{ chunk mem.SliceBuffer }

func (bulkCodec) Name() string { return "proto" }

func (bulkCodec) Unmarshal(data mem.BufferSlice, v any) error {
	return proto.Unmarshal(data.Materialize(), v.(proto.Message))
}

func (c bulkCodec) Marshal(v any) (mem.BufferSlice, error) {
	if _, ok := v.(*runtimeapi.ExecSyncResponse); !ok {
		encoded, err := proto.Marshal(v.(proto.Message))
		return mem.BufferSlice{mem.SliceBuffer(encoded)}, err
	}
	var out mem.BufferSlice
	for _, field := range []protowire.Number{fieldStdout, fieldStderr} {
		head := binary.AppendUvarint(protowire.AppendTag(nil, field, protowire.BytesType), 16*mebibyte)
		out = append(out, mem.SliceBuffer(head))
		for range 16 * mebibyte / len(c.chunk) {
			out = append(out, c.chunk)
		}
	}
	code := binary.AppendUvarint(protowire.AppendTag(nil, fieldExitCode, protowire.VarintType), 7)
	return append(out, mem.SliceBuffer(code)), nil
}

// bulkRuntime is a runtime whose commands all have the longest possible output. It sends the
// answers when it has the given number of calls.
type bulkRuntime struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	calls sync.WaitGroup
}

func (*bulkRuntime) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{RuntimeName: "containerd", RuntimeVersion: "v2.2.9"}, nil
}

func (r *bulkRuntime) ExecSync(context.Context, *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	r.calls.Done()
	r.calls.Wait()
	return &runtimeapi.ExecSyncResponse{}, nil
}

// Sixteen of the longest answers at a time, 512 MiB, cost little memory.
func TestExecSyncKeepsLittleOfLongAnswers(t *testing.T) {
	const calls, limit = 16, 64 * mebibyte
	socket := filepath.Join(t.TempDir(), "bulk.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	bulk := &bulkRuntime{}
	bulk.calls.Add(calls)
	server := grpc.NewServer(grpc.ForceServerCodecV2(bulkCodec{chunk: make([]byte, mebibyte)}), grpc.MaxSendMsgSize(64*mebibyte))
	runtimeapi.RegisterRuntimeServiceServer(server, bulk)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	client := dial(t, socket, nil)

	debug.FreeOSMemory()
	before := usedMemory()
	var running sync.WaitGroup
	for range calls {
		running.Go(func() {
			stdout, stderr, exitCode, err := client.ExecSync(t.Context(), "c1", []string{"cat"}, patience)
			if err != nil || len(stdout) != maxOutputBytes || len(stderr) != maxOutputBytes || exitCode != 7 {
				t.Errorf("ExecSync() = %d and %d bytes, %d, %v", len(stdout), len(stderr), exitCode, err)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		running.Wait()
	}()
	most := before
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		case <-time.After(time.Millisecond):
		}
		most = max(most, usedMemory())
	}
	t.Logf("%d answers cost %d KiB", calls, (most-before)>>10)
	if most-before > limit {
		t.Errorf("%d answers cost %d MiB, want at most %d MiB", calls, (most-before)/mebibyte, limit/mebibyte)
	}
}

// usedMemory returns the memory that the process has from the operating system, in bytes.
func usedMemory() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}
