// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
	"github.com/seamark-dev/seamark/test/expect"
)

// The code and the message of an error are those of the runtime, whatever bytes the message has.
func TestExecSyncReturnsErrorOfRuntime(t *testing.T) {
	for _, message := range []string{"", "100% of 1+1", "two\nlines", "größer", "%zz %"} {
		runtime := critest.New(t, critest.Streamed)
		runtime.OnExec(func(context.Context, *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
			return nil, status.Error(codes.FailedPrecondition, message)
		})
		client := dial(t, runtime.Socket(), nil)
		_, _, _, err := client.ExecSync(t.Context(), "c1", []string{"true"}, patience)
		var answer interface{ GRPCStatus() *status.Status }
		if !errors.As(err, &answer) || answer.GRPCStatus().Code() != codes.FailedPrecondition || answer.GRPCStatus().Message() != message {
			t.Errorf("ExecSync: %v, want FailedPrecondition %q", err, message)
		}
	}
}

// A call that is open when the runtime is killed ends at once, without a result, and the next
// call reaches the restarted runtime.
func TestExecSyncAcrossRestartOfRuntime(t *testing.T) {
	runtime := critest.New(t, critest.Streamed)
	started := make(chan struct{}, 1)
	hang := func(ctx context.Context, _ *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
		started <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	client := dial(t, runtime.Socket(), nil)
	for range 3 {
		runtime.OnExec(hang)
		done := make(chan error, 1)
		go func() {
			_, _, _, err := client.ExecSync(t.Context(), "c1", []string{"sleep"}, patience)
			done <- err
		}()
		select {
		case <-started:
		case err := <-done:
			t.Fatalf("ExecSync: %v", err)
		}
		runtime.Stop()
		var unavailable interface{ Unavailable() bool }
		if err := <-done; !errors.As(err, &unavailable) || !unavailable.Unavailable() {
			t.Errorf("ExecSync of the killed runtime: %v, want that the runtime is unavailable", err)
		}
		runtime.OnExec(nil)
		runtime.Start()
		eventually(t, "no reconnection to the restarted runtime", func() bool {
			_, err := client.Version(t.Context())
			return err == nil
		})
		eventually(t, "no call reaches the restarted runtime", func() bool {
			_, _, _, err := client.ExecSync(t.Context(), "c1", []string{"true"}, patience)
			return err == nil
		})
	}
}

// Calls that the runtime never ends do not block others, however many there are.
func TestExecSyncBesidesManyOpenCalls(t *testing.T) {
	const open = 1100 // More than a connection has.
	runtime := critest.New(t, critest.Streamed)
	started := make(chan struct{}, open)
	runtime.OnExec(func(ctx context.Context, request *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
		if request.GetContainerId() == "c1" {
			return &runtimeapi.ExecSyncResponse{}, nil
		}
		started <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	client := dial(t, runtime.Socket(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{}, open)
	for range open {
		go func() {
			_, _, _, _ = client.ExecSync(ctx, "c2", []string{"sleep"}, patience)
			ended <- struct{}{}
		}()
		select {
		case <-started:
		case <-time.After(patience):
			t.Fatal("a call does not reach the runtime")
		}
	}
	if _, _, _, err := client.ExecSync(t.Context(), "c1", []string{"true"}, patience); err != nil {
		t.Errorf("ExecSync: %v", err)
	}
	cancel()
	for range open {
		<-ended
	}
}

// FuzzDecodeResponse checks that a valid response is decoded as by the protobuf library, except
// that its outputs are truncated and that groups are rejected, and that outputs are also limited
// while an invalid one is decoded.
func FuzzDecodeResponse(f *testing.F) {
	for _, response := range []*runtimeapi.ExecSyncResponse{
		{},
		{Stdout: []byte("idle\n")},
		{Stdout: []byte(strings.Repeat("a", maxOutputBytes+1)), Stderr: []byte("b"), ExitCode: -1},
	} {
		encoded, err := proto.Marshal(response)
		expect.NoError(f, err)
		f.Add(encoded)
		// Unknown fields of all types, and a repeated field.
		encoded = protowire.AppendFixed32(protowire.AppendTag(encoded, 9, protowire.Fixed32Type), 1)
		encoded = protowire.AppendFixed64(protowire.AppendTag(encoded, 10, protowire.Fixed64Type), 1)
		encoded = protowire.AppendBytes(protowire.AppendTag(encoded, 11, protowire.BytesType), []byte("new"))
		encoded = protowire.AppendVarint(protowire.AppendTag(encoded, fieldExitCode, protowire.VarintType), 2)
		f.Add(encoded)
		f.Add(protowire.AppendTag(protowire.AppendTag(encoded, 12, protowire.StartGroupType), 12, protowire.EndGroupType))
		f.Add(encoded[:len(encoded)-1])
	}
	f.Fuzz(func(t *testing.T, encoded []byte) {
		want := &runtimeapi.ExecSyncResponse{}
		invalid := proto.Unmarshal(encoded, want)
		want.Stdout, want.Stderr = truncated(want.GetStdout()), truncated(want.GetStderr())
		got, err := decodeResponse(bufio.NewReader(bytes.NewReader(encoded)))
		if len(got.GetStdout()) > maxOutputBytes || len(got.GetStderr()) > maxOutputBytes {
			t.Fatalf("%d and %d bytes of output, want at most %d", len(got.GetStdout()), len(got.GetStderr()), maxOutputBytes)
		}
		if invalid != nil {
			return // The library also rejects what cannot change the decoded fields.
		}
		if hasGroup(encoded) {
			if err == nil {
				t.Fatal("decodeResponse accepts a group, which no version of the message has")
			}
			return
		}
		expect.NoError(t, err)
		expect.Equal(t, "response", want, got, protocmp.Transform(), protocmp.IgnoreEmptyMessages(), protocmp.IgnoreUnknown())
	})
}

// hasGroup reports whether a valid message has a field of the deprecated type group.
func hasGroup(encoded []byte) bool {
	for len(encoded) > 0 {
		_, kind, n := protowire.ConsumeField(encoded)
		if kind == protowire.StartGroupType {
			return true
		}
		encoded = encoded[n:]
	}
	return false
}

func truncated(output []byte) []byte { return output[:min(len(output), maxOutputBytes)] }

func TestDecodeMessageErrors(t *testing.T) {
	message := func(flag byte, length uint32, body ...byte) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{flag}, length), body...)
	}
	cases := map[string]struct {
		message []byte
		want    string
	}{
		"empty":              {message: nil, want: "EOF"},
		"incomplete prefix":  {message: []byte{0, 0}, want: "unexpected EOF"},
		"compressed":         {message: message(1, 0), want: "compression"},
		"incomplete tag":     {message: message(0, 1, 0x80), want: "unexpected EOF"},
		"incomplete output":  {message: message(0, 4, 0x0a, 5, 'a', 'b'), want: "unexpected EOF"},
		"output of 16 EiB":   {message: message(0, 12, 0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 'a'), want: "unexpected EOF"},
		"incomplete number":  {message: message(0, 2, 0x18, 0xff), want: "unexpected EOF"},
		"unknown wire type":  {message: message(0, 1, 0x0f), want: "wire type 7"},
		"incomplete unknown": {message: message(0, 3, 0x4d, 1, 2), want: "unexpected EOF"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := decodeMessage(bytes.NewReader(tc.message)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("decodeMessage() = %v, %v, want error %q", got, err, tc.want)
			}
		})
	}
}

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

// Eight of the longest answers at a time, 256 MiB, cost little memory.
func TestExecSyncKeepsLittleOfLongAnswers(t *testing.T) {
	const calls, limit = 8, 64 * mebibyte
	socket := filepath.Join(t.TempDir(), "bulk.sock")
	listener, err := net.Listen("unix", socket)
	expect.NoError(t, err)
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
