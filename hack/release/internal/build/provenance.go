// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// subject is a file or an image, with its SHA-256 sum in hexadecimal digits.
type subject struct{ name, sum string }

// provenance returns the statement of in-toto, with the predicate SLSA provenance, about the subjects. It is not signed,
// and contains no times and no identifiers of a run, so that the same build gives the same statement. JSON objects have
// sorted keys.
func (r *run) provenance(subjects []subject) ([]byte, error) {
	type object = map[string]any
	var named []object
	for _, s := range subjects {
		named = append(named, object{"name": s.name, "digest": object{"sha256": s.sum}})
	}
	const pages = repository + "/blob/main/"
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(object{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       named,
		"predicateType": "https://slsa.dev/provenance/v1",
		"predicate": object{
			"buildDefinition": object{
				"buildType":            pages + "docs/security.md#provenance",
				"externalParameters":   object{"version": r.version, "registry": r.Registry, "url": r.URL},
				"internalParameters":   object{"go": r.toolchain},
				"resolvedDependencies": []object{{"uri": "git+" + repository, "digest": object{"gitCommit": r.commit.Hash}}},
			},
			// Without a signature, nothing more can be proven about who ran the build.
			"runDetails": object{"builder": object{"id": pages + "docs/development/releasing.md"}},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the provenance: %w", err)
	}
	return out.Bytes(), nil
}
