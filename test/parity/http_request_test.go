// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package parity_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/test/expect"
)

// TestHTTPRequests sends the requests of various probes. Both sides must send the same bytes.
func TestHTTPRequests(t *testing.T) {
	type edit = func(*corev1.HTTPGetAction)
	none := func(*corev1.HTTPGetAction) {}
	cases := map[string]edit{
		"minimum":                     none,
		"no path":                     path(""),
		"no scheme":                   func(a *corev1.HTTPGetAction) { a.Scheme = "" },
		"path":                        path("/healthz/ready"),
		"path without a slash":        path("healthz"),
		"query":                       path("/idle?full=1&x=a%20b"),
		"only a query":                path("?full=1"),
		"empty query":                 path("/idle?"),
		"two question marks":          path("/idle?a?b"),
		"fragment":                    path("/idle#part"),
		"only a fragment":             path("#part"),
		"space":                       path("/a b"),
		"space in the query":          path("/a?b c"),
		"escapes":                     path("/a%2Fb%20c"),
		"lower-case escapes":          path("/a%2fb"),
		"bad escape":                  path("/100%"),
		"bad escape and a query":      path("/100%?a=b"),
		"bad escape without a slash":  path("100%"),
		"non-ASCII letters":           path("/é/日本"),
		"non-ASCII letters, query":    path("/?q=é"),
		"invalid UTF-8":               path("/\xff"),
		"dots":                        path("/a/../b/./c"),
		"double slashes":              path("/a//b"),
		"host in the path":            path("//example.com/x"),
		"host and a user in the path": path("//user:secret@example.com/x"),
		"whole URL":                   path("http://example.com:1/x?y=z"),
		"URL with a user":             path("https://user:secret@example.com/x"),
		"semicolons":                  path("/a;b=c?d;e"),
		"colon in the first part":     path("/a:b"),
		"reserved letters":            path("/!$&'()*+,=@~[]{}|\\^`\"<>"),
		"plus sign":                   path("/a+b?c+d"),
		"line feed":                   path("/a\nb"),
		"NUL":                         path("/a\x00b"),
		"long path":                   path("/" + strings.Repeat("x", 8000)),
		"asterisk":                    path("*"),

		"header":                      headers("X-Game", "a"),
		"lower-case name":             headers("x-game", "a"),
		"name in odd case":            headers("X-gAmE", "a"),
		"name with an underscore":     headers("x_game", "a"),
		"header twice":                headers("X-Game", "a", "X-Game", "b"),
		"header twice in two cases":   headers("X-Game", "a", "x-game", "b"),
		"many headers":                headers("B", "1", "A", "2", "C", "3", "A", "4"),
		"empty value":                 headers("X-Game", ""),
		"white space in a value":      headers("X-Game", "  a  b\t"),
		"non-ASCII letters, value":    headers("X-Game", "é"),
		"invalid UTF-8 value":         headers("X-Game", "\xff"),
		"long value":                  headers("X-Game", strings.Repeat("x", 8000)),
		"line feed in a value":        headers("X-Game", "a\nb"),
		"return in a value":           headers("X-Game", "a\rb"),
		"NUL in a value":              headers("X-Game", "a\x00b"),
		"space in a name":             headers("X Game", "a"),
		"empty name":                  headers("", "a"),
		"colon in a name":             headers("X:Game", "a"),
		"pseudo header":               headers(":authority", "a"),
		"non-ASCII letters, name":     headers("é", "a"),
		"host":                        headers("Host", "game.example.com"),
		"host in lower case":          headers("host", "game.example.com:8080"),
		"two hosts":                   headers("Host", "a.example.com", "Host", "b.example.com"),
		"empty host":                  headers("Host", ""),
		"empty host before another":   headers("Host", "", "Host", "a.example.com"),
		"host with a space":           headers("Host", "a b"),
		"host with a slash":           headers("Host", "a/b"),
		"non-ASCII host":              headers("Host", "é.example.com"),
		"host with a line feed":       headers("Host", "a\r\nX-Evil: 1"),
		"IPv6 host with a zone":       headers("Host", "[fe80::1%25eth0]:80"),
		"agent":                       headers("User-Agent", "me/1.0"),
		"agent in lower case":         headers("user-agent", "me/1.0"),
		"empty agent":                 headers("User-Agent", ""),
		"two agents":                  headers("User-Agent", "a", "User-Agent", "b"),
		"empty agent before another":  headers("User-Agent", "", "User-Agent", "b"),
		"accept":                      headers("Accept", "text/plain"),
		"empty accept":                headers("Accept", ""),
		"accept twice":                headers("Accept", "text/plain", "Accept", "text/html"),
		"empty accept before another": headers("Accept", "", "Accept", "text/html"),
		"empty accept after another":  headers("Accept", "text/html", "Accept", ""),
		"accepted encoding":           headers("Accept-Encoding", "gzip"),
		"length":                      headers("Content-Length", "5"),
		"encoding":                    headers("Transfer-Encoding", "chunked"),
		"trailer":                     headers("Trailer", "X"),
		"keep-alive":                  headers("Connection", "keep-alive"),
		"close":                       headers("Connection", "close"),
		"upgrade":                     headers("Connection", "Upgrade", "Upgrade", "websocket"),
		"expect":                      headers("Expect", "200-ok"),
		"authorization":               headers("Authorization", "Bearer secret"),
		"user and authorization":      both(path("//a:b@x/"), headers("Authorization", "Bearer secret")),
		"cookie":                      headers("Cookie", "a=b", "Cookie", "c=d"),
		"referer":                     headers("Referer", "http://example.com/"),
		"range":                       headers("Range", "bytes=0-1"),
	}
	for name, edit := range cases {
		t.Run(name, func(t *testing.T) {
			want := success
			if neverSent(name) {
				want = failure
			}
			got := compare(t, httpGet(edit), wire(say(ok)), ample, want, verbatim)
			if (len(got.Requests) == 1) != (want == success) {
				t.Errorf("the server read %q", got.Requests)
			}
		})
	}
}

// neverSent reports whether the HTTP client rejects the request.
func neverSent(name string) bool {
	switch name {
	case "line feed in a value", "return in a value", "NUL in a value", "space in a name", "empty name",
		"colon in a name", "pseudo header", "host with a line feed", "non-ASCII letters, name":
		return true
	default:
		return false
	}
}

func both(edits ...func(*corev1.HTTPGetAction)) func(*corev1.HTTPGetAction) {
	return func(a *corev1.HTTPGetAction) {
		for _, edit := range edits {
			edit(a)
		}
	}
}

// TestHTTPRedirects redirects to the same host and to others. Both sides must follow the same
// redirects with the same requests.
func TestHTTPRedirects(t *testing.T) {
	to := func(status int, location string) answer {
		return say(fmt.Sprintf("HTTP/1.1 %d Go\r\nLocation: %s\r\nContent-Length: 5\r\n\r\nmoved", status, location))
	}
	chain := func(length int) answer {
		answers := make([]answer, 0, length+1)
		for i := range length {
			answers = append(answers, to(302, fmt.Sprint("/", i)))
		}
		return inTurn(append(answers, say(ok))...)
	}
	once := func(location string) answer { return inTurn(to(302, location), say(ok)) }
	cases := map[string]struct {
		reply answer
		want  conclusion
		runs  int
	}{
		"path":                      {once("/b"), success, 2},
		"relative path":             {once("b"), success, 2},
		"query":                     {once("?b"), success, 2},
		"fragment":                  {once("#b"), success, 2},
		"whole URL":                 {once("http://SERVER/b"), success, 2},
		"URL without a scheme":      {once("//SERVER/b"), success, 2},
		"URL with a user":           {once("http://user:secret@SERVER/b"), success, 2},
		"invalid path":              {once("/a b/../%zz"), failure, 1},
		"non-ASCII letters":         {once("/é"), success, 2},
		"empty location":            {once(""), success, 1},
		"no location":               {say("HTTP/1.1 302 Go\r\nContent-Length: 5\r\n\r\nmoved"), success, 1},
		"two locations":             {inTurn(to(302, "/b\r\nLocation: /c"), say(ok)), success, 2},
		"invalid URL":               {once("http://[bad/"), failure, 1},
		"location with a NUL":       {once("/a\x00b"), failure, 1},
		"closed port of this host":  {once("http://127.0.0.1:1/b"), failure, 1},
		"port 0":                    {once("http://127.0.0.1:0/b"), failure, 1},
		"another scheme":            {once("ftp://SERVER/b"), failure, 1},
		"only a scheme":             {once("mailto:x"), success, 1},
		"TLS on a plain port":       {once("https://SERVER/b"), failure, 1},
		"another name of this host": {once("http://localhost:1/b"), success, 1},
		"another address":           {once("http://127.0.0.2:1/b"), success, 1},
		"short form of the address": {once("http://127.1:1/b"), success, 1},
		"IPv6 address":              {once("http://[::1]:1/b"), success, 1},
		"another host":              {once("http://example.com/b"), success, 1},
		"another host, TLS":         {once("https://example.com/b"), success, 1},
		"another host, no scheme":   {once("//example.com/b"), success, 1},
		"no host":                   {once("http:///b"), success, 1},
		"file":                      {once("file:///etc/passwd"), success, 1},
		"same host, then another":   {inTurn(to(302, "/b"), to(302, "http://example.com/")), success, 2},
		"loop":                      {to(302, "/"), failure, 10},
		"9 in a row":                {chain(9), success, 10},
		"10 in a row":               {chain(10), failure, 10},
		"to a failure":              {inTurn(to(302, "/b"), say("HTTP/1.1 500 Down\r\nContent-Length: 0\r\n\r\n")), failure, 2},
		"to a reset":                {inTurn(to(302, "/b"), reset), failure, 2},
		"to an invalid response":    {inTurn(to(302, "/b"), say("nonsense")), failure, 2},
		"to a truncated body":       {inTurn(to(302, "/b"), say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"), to(302, "/b"), say(ok)), success, 4},
		"sets a cookie":             {inTurn(to(302, "/b\r\nSet-Cookie: a=b"), say(ok)), success, 2},
	}
	for status := 300; status < 310; status++ {
		followed := 1
		if strings.Contains("301 302 303 307 308", fmt.Sprint(status)) {
			followed = 2
		}
		tc := cases["path"]
		tc.reply, tc.runs = inTurn(to(status, "/b"), say(ok)), followed
		cases[fmt.Sprint("status ", status)] = tc
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			probe := httpGet(path("/a?q#f"), headers("Host", "game.example.com", "X-Game", "a", "Authorization", "Bearer secret", "Cookie", "k=v"))
			got := compare(t, probe, wire(tc.reply), ample, tc.want, verbatim)
			expect.Equal(t, "requests", tc.runs, len(got.Requests))
		})
	}
}
