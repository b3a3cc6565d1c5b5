// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/test/expect"
)

func TestOutputHasAllRows(t *testing.T) {
	out := output(map[string][]cost{
		floorName: {{2, 100}, {4, 300}}, "get": {{1, 50}, {3, 70}}, "top": {{1, 40}, {1, 40}}, page: {{1, 90}, {2, 110}},
	})
	expect.NoError(t, Measures()[0].Check(out))
	if r := out.Results[1]; r.Value != 60 || r.Floor != 200 || r.Unit != "MiB" {
		t.Errorf("result %+v, want 60 of 200 MiB", r)
	}
	if r := out.Results[5]; r.Value != 100 || r.Floor != 200 || !strings.Contains(r.Name, "seamark ui") {
		t.Errorf("result %+v, want 100 of 200 MiB", r)
	}
}

// The pods of a page are those of all events until its state is complete.
func TestReadStream(t *testing.T) {
	const pods = ":\n\nevent: pods\ndata: {\"reset\":true,\"pods\":[{\"key\":\"a/b\"}]}\n\n" +
		"event: pods\ndata: {\"pods\":[{\"key\":\"a/c\"},{\"key\":\"a/b\"}]}\n\nevent: markers\ndata: {}\n\n"
	events, err := readStream(strings.NewReader(pods + "event: ready\ndata: {}\n\nevent: pods\ndata: {}\n\n"))
	if err != nil || len(events) != 2 {
		t.Fatalf("%d events, error %v", len(events), err)
	}
	expect.Success(t, checkPods(events, 2))
	if err := checkPods(events, 3); err == nil || err.Error() != "the page has 2 pods, want 3" {
		t.Errorf("error %v of a page with too few pods", err)
	}
	for tail, want := range map[string]string{
		"": "before its state was complete", "event: end\ndata: {\"reason\":\"stop\"}\n\n": `ended: {"reason":"stop"}`,
	} {
		if _, err := readStream(strings.NewReader(pods + tail)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v of an incomplete stream, want %q", err, want)
		}
	}
}
