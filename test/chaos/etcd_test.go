// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

const (
	// etcdRoom is the space that etcd has until it is full, and fillSize that of one value that fills it.
	etcdRoom, fillSize = 8 << 20, 1 << 20
	// fillKey begins the keys of these values.
	fillKey = "/chaos/fill/"
)

// answer has the fields of etcd's answers that the test needs. Its gateway writes 64-bit numbers as strings.
type answer struct {
	Header struct {
		MemberID string `json:"member_id"`
		Revision string `json:"revision"`
	} `json:"header"`
	DBSize int64 `json:"dbSize,string"`
}

var errFull = errors.New("etcd is full")

// etcd calls a method of etcd's gateway.
func (w *world) etcd(ctx context.Context, method string, body map[string]any) (*answer, error) {
	response, err := w.stream(ctx, method, body)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Close() }()
	got := &answer{}
	if err := json.NewDecoder(response).Decode(got); err != nil {
		return nil, fmt.Errorf("%s of etcd: %w", method, err)
	}
	return got, nil
}

// stream calls a method of etcd's gateway and returns its response, which the caller closes.
func (w *world) stream(ctx context.Context, method string, body map[string]any) (io.ReadCloser, error) {
	pki := filepath.Join(w.Dir, "pki")
	pair, err := tls.LoadX509KeyPair(filepath.Join(pki, "etcd-client.crt"), filepath.Join(pki, "etcd-client.key"))
	if err != nil {
		return nil, fmt.Errorf("certificate of etcd's client: %w", err)
	}
	authority, err := os.ReadFile(filepath.Join(pki, "etcd-ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("certificate of etcd: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	content, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("request of etcd: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+hostAddress+":2379/v3/"+method, bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("request of etcd: %w", err)
	}
	// Each call has its own connection, which ends with its response.
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12},
	}}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("request of etcd: %w", err)
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s of etcd: %w", method, err)
	case strings.Contains(string(text), "database space exceeded"):
		return nil, errFull
	}
	return nil, fmt.Errorf("%s of etcd: %s: %s", method, response.Status, text)
}

// fillEtcd restarts etcd with a quota that is slightly more than it uses, and writes until it refuses.
func (w *world) fillEtcd(ctx context.Context) error {
	none := map[string]any{}
	// Free pages do not count as free space, and would be filled before the quota matters.
	if _, err := w.etcd(ctx, "maintenance/defragment", none); err != nil {
		return err
	}
	status, err := w.etcd(ctx, "maintenance/status", none)
	if err != nil {
		return err
	}
	if err := w.upWith(ctx, fmt.Sprintf("ETCD_QUOTA_BACKEND_BYTES=%d", status.DBSize+etcdRoom)); err != nil {
		return err
	}
	value := make([]byte, fillSize)
	for i := range 8 * etcdRoom / fillSize {
		_, err := w.etcd(ctx, "kv/put", map[string]any{"key": base64.StdEncoding.EncodeToString(fmt.Append(nil, fillKey, i)), "value": value})
		if errors.Is(err, errFull) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return errors.New("etcd writes more than its quota allows")
}

// emptyEtcd does what an administrator of a full etcd does.
func (w *world) emptyEtcd(ctx context.Context) error {
	none := map[string]any{}
	// After a slash comes a zero.
	end := strings.TrimSuffix(fillKey, "/") + "0"
	deleted, err := w.etcd(ctx, "kv/deleterange", map[string]any{"key": []byte(fillKey), "range_end": []byte(end)})
	if err != nil {
		return err
	}
	for _, call := range []struct {
		method string
		body   map[string]any
	}{
		{"kv/compaction", map[string]any{"revision": deleted.Header.Revision}},
		{"maintenance/defragment", none},
		{"maintenance/alarm", map[string]any{"action": "DEACTIVATE", "memberID": deleted.Header.MemberID, "alarm": "NOSPACE"}},
	} {
		if _, err := w.etcd(ctx, call.method, call.body); err != nil {
			return err
		}
	}
	return w.up(ctx)
}
