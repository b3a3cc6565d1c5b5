#!/usr/bin/env bash
# Prints the recipes that differ from a commit: all of them if what they share differs.
set -euo pipefail
cd "$(dirname "$0")/.."

changed=$(git diff --name-only "$1" -- examples/recipes test/recipes hack/image hack/cluster/internal/recipe hack/cluster/internal/deb)
for folder in examples/recipes/*/image; do
	name=$(basename "$(dirname "$folder")")
	while read -r file; do
		case $file in
		"examples/recipes/$name/"* | "test/recipes/${name}_test.go") ;;
		examples/recipes/*/*) continue ;;
		test/recipes/*_test.go) [[ ! -d examples/recipes/$(basename "$file" _test.go) ]] || continue ;;
		"" | *.md) continue ;;
		esac
		echo "$name"
		break
	done <<<"$changed"
done
