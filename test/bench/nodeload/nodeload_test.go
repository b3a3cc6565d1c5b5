// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"github.com/seamark-dev/seamark/internal/agent/cri"
)

// TestNode runs a node, calls its runtime and measures every floor against it.
func TestNode(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	in, lines := io.Pipe()
	out, answers := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Main([]string{"serve", "--socket=" + socket, "--pods=3"}, in, answers) }()
	decoder := json.NewDecoder(out)
	var ready Ready
	if err := decoder.Decode(&ready); err != nil {
		t.Fatal(err)
	}

	client, err := cri.Dial(t.Context(), socket, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, _, code, err := client.ExecSync(t.Context(), ContainerID(0), []string{Command}, 1e9); err != nil || code != 0 {
		t.Errorf("ExecSync: exit code %d, error %v", code, err)
	}
	for kind, target := range map[string]string{
		KindExec: socket, KindTCP: fmt.Sprintf("%s:%d", PodIP(1), ready.TCP), KindHTTP: fmt.Sprintf("%s:%d", PodIP(2), ready.HTTP),
	} {
		var result bytes.Buffer
		if err := Main([]string{"floor", "--kind=" + kind, "--target=" + target, "--rate=100", "--for=200ms"}, nil, &result); err != nil {
			t.Error(err)
			continue
		}
		var floor Floor
		if err := json.Unmarshal(result.Bytes(), &floor); err != nil || floor.Done == 0 || floor.CPU == 0 {
			t.Errorf("floor of %s: %+v, error %v", kind, floor, err)
		}
	}

	if _, err := io.WriteString(lines, "\n"); err != nil {
		t.Fatal(err)
	}
	calls := map[string]int{}
	if err := decoder.Decode(&calls); err != nil {
		t.Fatal(err)
	}
	if calls["ExecSync"] != 1 {
		t.Errorf("runtime calls = %v, want one ExecSync: those of the floor do not count", calls)
	}
	if err := lines.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
