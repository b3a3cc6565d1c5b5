// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Endpoint is the address that a server listens on.
type Endpoint struct {
	// bindAddress is host:port, or :port for all addresses. "0" disables the server.
	// +optional
	BindAddress string `json:"bindAddress,omitempty"`
}

// LogFormat is the format of log lines.
// +kubebuilder:validation:Enum=text;json
type LogFormat string

const (
	// LogText writes key=value pairs.
	LogText LogFormat = "text"
	// LogJSON writes one JSON object per line.
	LogJSON LogFormat = "json"
)

// Logging configures the log.
type Logging struct {
	// verbosity is the highest level that is logged, 0 to 10. At level 0, the log contains
	// state transitions and problems that require action. Default 0.
	// +optional
	Verbosity int32 `json:"verbosity,omitempty"`
	// format is text or json. Default "text".
	// +optional
	Format LogFormat `json:"format,omitempty"`
}
