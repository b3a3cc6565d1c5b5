// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package remote_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/seamark-dev/seamark/internal/cli/remote"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/exec"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestMain(m *testing.M) {
	// client-go's heartbeat notices the end of its connection within its period of 5 seconds.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start"))
}

// The channels of a session, and the statuses of commands.
const (
	stdout = "\x01"
	stderr = "\x02"
	status = "\x03"

	success  = `{"status":"Success"}`
	exited3  = `{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}`
	internal = `{"status":"Failure","reason":"InternalError","message":"no such file"}`
	denied   = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"pods is forbidden"}`
)

var container = remote.Container{Pod: types.NamespacedName{Namespace: "games", Name: "game-0"}, Name: "main"}

// ample is a timeout that is never reached.
const ample = time.Minute

func run(t *testing.T, ctx context.Context, handler http.HandlerFunc, timeout time.Duration) (probing.Outcome, error) { //nolint:revive // the testing.T is first
	t.Helper()
	return probe(t, ctx, handler, probing.Target{Handler: probing.HandlerExec, Timeout: timeout, Exec: &probing.Exec{Command: []string{"cat", "/tmp/job"}}})
}

// probe runs the target against a fake API server.
func probe(t *testing.T, ctx context.Context, handler http.HandlerFunc, target probing.Target) (probing.Outcome, error) { //nolint:revive // the testing.T is first
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client, err := remote.NewClient(&rest.Config{Host: server.URL}, "test")
	expect.NoError(t, err)
	return client.Prober(container).Probe(ctx, target)
}

// webSocket upgrades the request and passes the connection on.
func webSocket(session func(*websocket.Conn)) http.HandlerFunc {
	upgrader := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}}
	return func(w http.ResponseWriter, r *http.Request) {
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		session(conn)
	}
}

// frames sends the messages and closes the session.
func frames(messages ...string) http.HandlerFunc {
	return webSocket(func(conn *websocket.Conn) {
		for _, message := range messages {
			_ = conn.WriteMessage(websocket.BinaryMessage, []byte(message))
		}
		_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
	})
}

// drain reads until the client closes the session.
func drain(conn *websocket.Conn) {
	for {
		if _, _, err := conn.ReadMessage(); err != nil {
			return
		}
	}
}

func TestExec(t *testing.T) {
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		want    probing.Outcome
	}{
		"success":      {frames(stdout+"out\n", stderr+"err\n", status+success), probing.Outcome{Success: true, Message: "out\nerr"}},
		"exit code":    {frames(stdout+"no job\n", status+exited3), probing.Outcome{Message: "no job"}},
		"no output":    {frames(status + exited3), probing.Outcome{Message: "exited with code 3"}},
		"empty frames": {frames(stdout, stderr, stdout+"a", stdout, stdout+"b", status+success), probing.Outcome{Success: true, Message: "ab"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := run(t, t.Context(), test.handler, ample)
			if err != nil || got != test.want {
				t.Errorf("Probe() = %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

func TestExecWithoutResult(t *testing.T) {
	cut := func(bytes string) http.HandlerFunc {
		return webSocket(func(conn *websocket.Conn) { _, _ = conn.NetConn().Write([]byte(bytes)) })
	}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"cannot start":      {frames(status + internal), "no such file"},
		"status is no JSON": {frames(status + "{"), "unexpected end of JSON input"},
		"connection lost":   {cut(""), "unexpected EOF"},
		"garbage":           {cut("HTTP/1.1 500 no\r\n\r\n"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := run(t, t.Context(), test.handler, ample)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Probe() = %+v, %v, want an error with %q", got, err, test.want)
			}
		})
	}
}

func TestExecTimesOut(t *testing.T) {
	for name, session := range map[string]func(*websocket.Conn){
		"stall": drain,
		"stall after data": func(conn *websocket.Conn) {
			_ = conn.WriteMessage(websocket.BinaryMessage, []byte(stdout+"x"))
			drain(conn)
		},
		"endless output": func(conn *websocket.Conn) {
			go drain(conn)
			for conn.WriteMessage(websocket.BinaryMessage, []byte(stdout+strings.Repeat("x", 1<<10))) == nil {
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{})
			got, err := run(t, t.Context(), webSocket(func(conn *websocket.Conn) { session(conn); close(ended) }), 50*time.Millisecond)
			if want := (probing.Outcome{TimedOut: true, Message: "timed out after 50ms"}); err != nil || got != want {
				t.Errorf("Probe() = %+v, %v, want %+v", got, err, want)
			}
			<-ended
		})
	}
}

func TestExecEndsWithItsContext(t *testing.T) {
	stop := errors.New("interrupted")
	for name, opens := range map[string]bool{"open session": true, "session that does not open": false} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			handler := webSocket(func(conn *websocket.Conn) {
				// The client answers as soon as it reads.
				conn.SetPongHandler(func(string) error { cancel(stop); return nil })
				_ = conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(ample))
				drain(conn)
			})
			if !opens {
				handler = func(http.ResponseWriter, *http.Request) { cancel(stop) }
			}
			if got, err := run(t, ctx, handler, ample); !errors.Is(err, stop) {
				t.Errorf("Probe() = %+v, %v, want error %v", got, err, stop)
			}
		})
	}
}

func TestExecRefused(t *testing.T) {
	for name, test := range map[string]struct {
		code   int
		body   string
		denied bool
		want   string
	}{
		"forbidden": {http.StatusForbidden, denied, true, "no permission to create pods/exec in namespace games: pods is forbidden"},
		"no such pod": {
			http.StatusNotFound, `{"kind":"Status","reason":"NotFound","message":"pods not found"}`, false, "exec of pod game-0: pods not found",
		},
		"proxy":            {http.StatusBadGateway, "<html>bad gateway</html>", false, "answer 502 Bad Gateway: <html>bad gateway</html>"},
		"endless answer":   {http.StatusBadGateway, strings.Repeat("x", 1<<20), false, "answer 502"},
		"no subprotocol":   {http.StatusOK, "", false, "answer 200 OK"},
		"redirect to self": {http.StatusFound, "", false, "answer 302 Found"},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			_, err := run(t, t.Context(), func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				w.WriteHeader(test.code)
				_, _ = w.Write([]byte(test.body))
			}, ample)
			var missing *remote.DeniedError
			if err == nil || !strings.Contains(err.Error(), test.want) || errors.As(err, &missing) != test.denied || !errors.Is(err, probing.ErrNoWay) {
				t.Errorf("error %v (%T), want %q, denied: %t", err, err, test.want, test.denied)
			}
			expect.Equal(t, "requests", 2, requests.Load())
		})
	}
}

// spdySession upgrades requests for SPDY only, and calls session when the streams exist.
func spdySession(session func(streams map[string]httpstream.Stream, conn httpstream.Connection)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set(httpstream.HeaderProtocolVersion, "v4.channel.k8s.io")
		created := make(chan httpstream.Stream, 3)
		conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
			created <- stream
			return nil
		})
		if conn == nil {
			return
		}
		defer conn.Close()
		streams := map[string]httpstream.Stream{}
		for range 3 {
			stream := <-created
			streams[stream.Headers().Get(corev1.StreamType)] = stream
		}
		session(streams, conn)
	}
}

func TestExecFallsBackToSPDY(t *testing.T) {
	for name, test := range map[string]struct {
		status string
		want   probing.Outcome
		err    string
	}{
		"success":     {status: success, want: probing.Outcome{Success: true, Message: "out"}},
		"exit code":   {status: exited3, want: probing.Outcome{Message: "out"}},
		"lost status": {err: "the connection ended without a status of the command"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := run(t, t.Context(), spdySession(func(streams map[string]httpstream.Stream, conn httpstream.Connection) {
				_, _ = streams[corev1.StreamTypeStdout].Write([]byte("out\n"))
				_, _ = streams[corev1.StreamTypeError].Write([]byte(test.status))
				for _, stream := range streams {
					_ = stream.Close()
				}
				// The client closes the connection when it has read everything.
				<-conn.CloseChan()
			}), ample)
			if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) || got != test.want {
				t.Errorf("Probe() = %+v, %v, want %+v, error %q", got, err, test.want, test.err)
			}
		})
	}
}

func TestOutputIsBounded(t *testing.T) {
	long := strings.Repeat("x", exec.MaxOutputBytes)
	got, err := run(t, t.Context(), frames(stdout+long, stdout+long, stderr+"err", status+success), ample)
	if err != nil || len(got.Message) > probing.MaxMessageBytes || !strings.HasSuffix(got.Message, "\nerr") {
		t.Errorf("message of %d bytes, error %v, want at most %d bytes and the standard error", len(got.Message), err, probing.MaxMessageBytes)
	}
}
