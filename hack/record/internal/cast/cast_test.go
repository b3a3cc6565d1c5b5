// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cast

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRecordingIsReadAsWritten(t *testing.T) {
	r := &Recording{Header: Header{Version: 2, Width: 80, Height: 24, Title: "a <title>", IdleTimeLimit: 2}}
	r.Add(0, "")
	r.Add(1500*time.Microsecond, "\x1b[1m$ ")
	r.Add(2*time.Second, "é\r\n")
	var out bytes.Buffer
	if err := r.Write(&out); err != nil {
		t.Fatal(err)
	}
	want := `{"version":2,"width":80,"height":24,"title":"a <title>","idle_time_limit":2}
[0.001500,"o","\u001b[1m$ "]
[2.000000,"o","é\r\n"]
`
	if out.String() != want {
		t.Errorf("written:\n%s\nwant:\n%s", out.String(), want)
	}
	got, err := Read(&out)
	if err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(got, r) {
		t.Errorf("read %+v, want %+v", got, r)
	}
}

func TestReadRefuses(t *testing.T) {
	header := `{"version":2,"width":80,"height":24}` + "\n"
	for name, test := range map[string]struct{ in, refusal string }{
		"nothing":          {"", "header is missing"},
		"version 1":        {`{"version":1,"width":80,"height":24}`, "version 1"},
		"no size":          {`{"version":2}`, "width 0"},
		"a huge size":      {`{"version":2,"width":80,"height":100000}`, "height 100000"},
		"an object":        {header + "{}", "line 2"},
		"two fields":       {header + `[1,"o"]`, "2 fields"},
		"a negative time":  {header + `[-1,"o","a"]`, "time -1s"},
		"decreasing times": {header + `[2,"o","a"]` + "\n" + `[1,"o","a"]`, "line 3: time 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Read(strings.NewReader(test.in)); err == nil || !strings.Contains(err.Error(), test.refusal) {
				t.Errorf("error %v, want one with %q", err, test.refusal)
			}
		})
	}
}

func TestReadLeavesOutInput(t *testing.T) {
	r, err := Read(strings.NewReader(`{"version":2,"width":80,"height":24}` + "\n" + `[1,"i","a"]` + "\n" + `[2,"o","b"]`))
	if err != nil {
		t.Fatal(err)
	}
	if want := []Event{{At: 2 * time.Second, Data: "b"}}; !cmp.Equal(r.Events, want) {
		t.Errorf("events %v, want %v", r.Events, want)
	}
}

func TestTextKeepsCharactersTogether(t *testing.T) {
	const whole = "aé→😀b"
	for size := range len(whole) {
		var text Text
		var parts []string
		for rest := []byte(whole); len(rest) > 0; {
			n := min(size+1, len(rest))
			part := text.Next(rest[:n])
			if strings.ContainsRune(part, '\uFFFD') {
				t.Errorf("reads of %d bytes: part %q is not valid", size+1, part)
			}
			parts, rest = append(parts, part), rest[n:]
		}
		if got := strings.Join(parts, ""); got != whole {
			t.Errorf("reads of %d bytes: got %q, want %q", size+1, got, whole)
		}
	}
}
