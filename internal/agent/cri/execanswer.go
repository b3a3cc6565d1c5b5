// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// maxOutputBytes is how much of stdout and stderr of a command is kept, as the kubelet does.
const maxOutputBytes = 10 << 10

// Field numbers of ExecSyncResponse.
const (
	fieldStdout   protowire.Number = 1
	fieldStderr   protowire.Number = 2
	fieldExitCode protowire.Number = 3
)

// decodeMessage reads one gRPC message with the response of ExecSync. It keeps the first
// maxOutputBytes of stdout and stderr.
func decodeMessage(r io.Reader) (*runtimeapi.ExecSyncResponse, error) {
	var prefix [prefixBytes]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return nil, err
	}
	if prefix[0] != 0 {
		return nil, errors.New("unexpected compression")
	}
	length := int64(binary.BigEndian.Uint32(prefix[1:]))
	return decodeResponse(bufio.NewReader(io.LimitReader(r, length)))
}

// decodeResponse decodes an encoded response.
func decodeResponse(r *bufio.Reader) (*runtimeapi.ExecSyncResponse, error) {
	response := &runtimeapi.ExecSyncResponse{}
	for {
		tag, err := binary.ReadUvarint(r)
		if errors.Is(err, io.EOF) {
			return response, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read tag: %w", err)
		}
		if err := decodeField(r, tag, response); err != nil {
			return nil, fmt.Errorf("read field: %w", noEOF(err))
		}
	}
}

// decodeField decodes a field into the response. It skips unknown fields.
func decodeField(r *bufio.Reader, tag uint64, response *runtimeapi.ExecSyncResponse) error {
	number, kind := protowire.DecodeTag(tag)
	switch kind {
	case protowire.VarintType:
		value, err := binary.ReadUvarint(r)
		if number == fieldExitCode {
			response.ExitCode = int32(value) //nolint:gosec // protobuf truncates an int32 as well
		}
		return err
	case protowire.BytesType:
		length, err := binary.ReadUvarint(r)
		if err != nil {
			return err
		}
		kept := uint64(0)
		if number == fieldStdout || number == fieldStderr {
			kept = min(length, maxOutputBytes)
		}
		output := make([]byte, kept)
		if _, err := io.ReadFull(r, output); err != nil {
			return err
		}
		switch number {
		case fieldStdout:
			response.Stdout = output
		case fieldStderr:
			response.Stderr = output
		}
		return skip(r, length-kept)
	case protowire.Fixed32Type:
		return skip(r, 4) //nolint:mnd // bytes
	case protowire.Fixed64Type:
		return skip(r, 8) //nolint:mnd // bytes
	default:
		return fmt.Errorf("wire type %d is invalid", kind)
	}
}

// skip discards n bytes.
func skip(r *bufio.Reader, n uint64) error {
	if n > 1<<32 { // More than any message has.
		return io.ErrUnexpectedEOF
	}
	_, err := io.CopyN(io.Discard, r, int64(n))
	return err
}

// noEOF returns the error of an input that ends within a field.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
