// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/streaming/pkg/httpstream"
)

// maxAnswerBytes limits an answer of the API server that is not a session.
const maxAnswerBytes = 64 << 10

// follower is the transport of an upgrade.
type follower struct {
	upgrade *upgrade
	next    http.RoundTripper
}

var _ utilnet.RoundTripperWrapper = (*follower)(nil)

// WrappedRoundTripper returns the transport that sends the request.
func (f *follower) WrappedRoundTripper() http.RoundTripper { return f.next }

// RoundTrip sends the request. An answer that opens no session is an error.
func (f *follower) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := f.next.RoundTrip(request.WithContext(f.upgrade.ctx))
	var failure *httpstream.UpgradeFailureError
	if errors.As(err, &failure) {
		f.upgrade.note(failure.Cause)
		return nil, err
	}
	if err == nil && response.StatusCode != http.StatusSwitchingProtocols {
		err = answerOf(response)
	}
	f.upgrade.note(err)
	if err != nil {
		return nil, err
	}
	return response, nil
}

// answerOf returns an answer that opens no session as an error.
func answerOf(response *http.Response) error {
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return fmt.Errorf("read answer %s: %w", response.Status, err)
	}
	status := metav1.Status{}
	if err := json.Unmarshal(body, &status); err == nil && status.Kind == "Status" {
		return &apierrors.StatusError{ErrStatus: status}
	}
	return fmt.Errorf("answer %s: %s", response.Status, strings.TrimSpace(string(body)))
}
