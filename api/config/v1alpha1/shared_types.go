// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Endpoint is where a server listens.
type Endpoint struct {
	// bindAddress is host:port or :port, the latter on all addresses; "0" serves nothing.
	// +optional
	BindAddress string `json:"bindAddress,omitempty"`
}

// LogFormat is how a line of the log is written.
// +kubebuilder:validation:Enum=text;json
type LogFormat string

const (
	// LogText writes key=value pairs.
	LogText LogFormat = "text"
	// LogJSON writes one JSON object a line.
	LogJSON LogFormat = "json"
)

// Logging is what is logged, and how.
type Logging struct {
	// verbosity is the highest level that is logged, 0 to 10. Default 0: changes of state,
	// and what somebody must act on.
	// +optional
	Verbosity int32 `json:"verbosity,omitempty"`
	// format is text or json. Default text.
	// +optional
	Format LogFormat `json:"format,omitempty"`
}
