// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provenance describes how the artifacts of a release were built: a statement of in-toto with the predicate
// SLSA provenance, without a signature.
package provenance

import (
	"bytes"
	"encoding/json"
	"fmt"

	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	predicateType = "https://slsa.dev/provenance/v1"
	// buildType is the page that describes the parameters.
	buildType = "https://github.com/seamark-dev/seamark/blob/main/docs/releasing.md#provenance"
	// builder is the page that describes the build. Without a signature, nothing more can be proven about who ran it.
	builder = "https://github.com/seamark-dev/seamark/blob/main/docs/releasing.md#build"
)

// Subject is an artifact.
type Subject struct {
	// Name is the name of a file or an image.
	Name string
	// SHA256 is the sum in hexadecimal digits.
	SHA256 string
}

// Build describes the build.
type Build struct {
	// Parameters are the parameters that whoever builds the release chooses, and Tools the versions of the tools.
	Parameters, Tools map[string]any
	// Source is the URL of the repository, and Commit the hash of the commit.
	Source, Commit string
}

// Statement returns the statement about the subjects as JSON. It contains no times and no identifiers of a run, so
// that the same build gives the same statement.
func Statement(subjects []Subject, b Build) ([]byte, error) {
	predicate, err := b.predicate()
	if err != nil {
		return nil, fmt.Errorf("describe the build: %w", err)
	}
	statement := &intoto.Statement{Type: intoto.StatementTypeUri, PredicateType: predicateType, Predicate: predicate}
	for _, s := range subjects {
		statement.Subject = append(statement.Subject, &intoto.ResourceDescriptor{
			Name: s.Name, Digest: map[string]string{"sha256": s.SHA256},
		})
	}
	if err := statement.Validate(); err != nil {
		return nil, fmt.Errorf("statement of provenance: %w", err)
	}
	return encode(statement)
}

func (b Build) predicate() (*structpb.Struct, error) {
	external, err := structpb.NewStruct(b.Parameters)
	if err != nil {
		return nil, err
	}
	internal, err := structpb.NewStruct(b.Tools)
	if err != nil {
		return nil, err
	}
	made := &slsa.Provenance{
		BuildDefinition: &slsa.BuildDefinition{
			BuildType: buildType, ExternalParameters: external, InternalParameters: internal,
			ResolvedDependencies: []*intoto.ResourceDescriptor{{
				Uri: "git+" + b.Source, Digest: map[string]string{"gitCommit": b.Commit},
			}},
		},
		RunDetails: &slsa.RunDetails{Builder: &slsa.Builder{Id: builder}},
	}
	if err := made.Validate(); err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(made)
	if err != nil {
		return nil, err
	}
	predicate := &structpb.Struct{}
	return predicate, protojson.Unmarshal(text, predicate)
}

// encode returns a message as JSON with sorted keys. protojson varies its output on purpose.
func encode(message proto.Message) ([]byte, error) {
	text, err := protojson.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("encode the statement: %w", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("encode the statement: %w", err)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(fields); err != nil {
		return nil, fmt.Errorf("encode the statement: %w", err)
	}
	return out.Bytes(), nil
}
