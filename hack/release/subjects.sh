#!/usr/bin/env bash
# subjects.sh DIST REGISTRY prints what the registry has of the release in the folder: a JSON list with the name and the
# digest of each image and of the chart, and of each image for one platform, with the bill of materials of its program.
set -euo pipefail
dist=$1 registry=$2

for layout in "$dist"/oci/*/; do
	name=$(basename "$layout")
	digest=$(jq -er '.manifests[0].digest' "$layout/index.json")
	jq -n '{name: $ARGS.positional[0], digest: $ARGS.positional[1]}' --args "$registry/$name" "$digest"
	jq -r '.manifests // [] | .[] | [.digest, .platform.os, .platform.architecture] | @tsv' "$layout/blobs/${digest/://}" |
		while read -r image os architecture; do
			bills=("$dist/${name}"_*"_${os}_$architecture.cdx.json")
			[[ -f ${bills[0]} && ${#bills[@]} -eq 1 ]] || { echo "$name for $os/$architecture: want one bill, found ${bills[*]}" >&2; exit 1; }
			jq -n '{name: $ARGS.positional[0], digest: $ARGS.positional[1], bill: $ARGS.positional[2]}' \
				--args "$registry/$name" "$image" "$(basename "${bills[0]}")"
		done
done | jq -cs .
