#!/usr/bin/env bash
# check.sh COMMIT MODULE... vets the modules, and lints and tests their packages that differ from the
# commit. It leaves out tests that need a server, a cluster or a browser.
set -euo pipefail
base=$1 root=$PWD
shift
untested='^\./test/(bench|chart|docs|e2e|images|integration|local)(/|$)'

folders=$({
	git diff --name-only --diff-filter=d "$base" -- '*.go'
	git ls-files --others --exclude-standard -- '*.go'
} | xargs -r dirname | sort -u)
echo "check what differs from $(git describe --always "$base")"

for module in "$@"; do
	echo "vet $module"
	go -C "$module" vet ./...
	packages=()
	for folder in $folders; do
		if [[ $(go -C "$folder" env GOMOD) == "$(realpath "$module")/go.mod" ]]; then
			packages+=("./$(realpath --relative-to="$module" "$folder")")
		fi
	done
	[[ ${#packages[@]} -gt 0 ]] || continue
	echo "lint ${packages[*]} of $module"
	(cd "$module" && go tool -modfile="$root/hack/tools/lint/go.mod" golangci-lint run --allow-serial-runners \
		--config "$root/.golangci.yml" "${packages[@]}")
	case $module in test/health | test/ui | test/release | test/monitoring) continue ;; esac
	[[ $module != . ]] || mapfile -t packages < <(printf '%s\n' "${packages[@]}" | grep -vE "$untested")
	[[ ${#packages[@]} -eq 0 ]] || go -C "$module" test "${packages[@]}"
done
