// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

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
		if err != nil {
			f.Fatal(err)
		}
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
		if err != nil {
			t.Fatalf("decodeResponse: %v", err)
		}
		if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreEmptyMessages(), protocmp.IgnoreUnknown()); diff != "" {
			t.Errorf("response (-want +got):\n%s", diff)
		}
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
