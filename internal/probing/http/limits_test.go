// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package http_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/probing"
	httpprobe "github.com/seamark-dev/seamark/internal/probing/http"
	"github.com/seamark-dev/seamark/internal/probing/probetest"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestProbeLimitsHeader(t *testing.T) {
	const (
		okay     = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"
		interim  = "HTTP/1.1 102 Wait\r\n\r\n"
		exceeded = "headers exceeded 8192 bytes"
	)
	for name, tc := range map[string]struct{ reply, says string }{
		"long line":            {reply: okay + "Trace: " + strings.Repeat("x", 7<<10)},
		"too long line":        {reply: okay + "Trace: " + strings.Repeat("x", 8<<10), says: exceeded},
		"many lines":           {reply: okay + strings.Repeat("A: b\r\n", 1<<10)},
		"too many lines":       {reply: okay + strings.Repeat("A: b\r\n", 2<<10), says: exceeded},
		"interim replies":      {reply: strings.Repeat(interim, 350) + okay},
		"many interim replies": {reply: strings.Repeat(interim, 400) + okay, says: exceeded},
		"long redirect": {
			reply: "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /" + strings.Repeat("x", 2<<10),
			says:  "bytes, must have at most 2048",
		},
	} {
		t.Run(name, func(t *testing.T) {
			address := probetest.Serve(t, func(conn net.Conn) {
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, tc.reply+"\r\n\r\n")
				_, _ = io.Copy(io.Discard, conn)
			})
			got, err := httpprobe.New(probing.Dialer(), "1.36").Probe(t.Context(), target(t, "http://"+address, timeout))
			if err != nil || got.Success != (tc.says == "") || !strings.Contains(got.Message, tc.says) {
				t.Errorf("Probe() = %+v, %v, want success %t and a message with %q", got, err, tc.says == "", tc.says)
			}
		})
	}
}

// TestRedirectsCount checks that each request after the first one is counted, with whether it needs TLS.
func TestRedirectsCount(t *testing.T) {
	mux := http.NewServeMux()
	base := serve(t, mux.ServeHTTP)
	secure := httptest.NewTLSServer(http.RedirectHandler(base+"/end", http.StatusFound))
	defer secure.Close()
	mux.HandleFunc("/start", http.RedirectHandler("/next", http.StatusFound).ServeHTTP)
	mux.HandleFunc("/next", http.RedirectHandler(secure.URL, http.StatusFound).ServeHTTP)
	mux.HandleFunc("/end", http.RedirectHandler("http://elsewhere.example/", http.StatusFound).ServeHTTP)
	to := target(t, base+"/start", timeout)
	var got []bool
	to.Again = func(tls bool) { got = append(got, tls) }
	if outcome, err := httpprobe.New(probing.Dialer(), "1.36").Probe(t.Context(), to); err != nil || !outcome.Success {
		t.Fatalf("Probe() = %+v, %v", outcome, err)
	}
	expect.Equal(t, "calls of Again", []bool{false, true, false}, got)
}
