#!/usr/bin/env bash
# Runs every fuzz target for some time: scripts/fuzz.sh [time each]
set -euo pipefail

go=${GO:-go}
each=${1:-10s}
"$go" list -f '{{.ImportPath}} {{.Dir}}' ./... | while read -r package dir; do
	{ grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$dir"/*_test.go 2>/dev/null || true; } | awk '{print $2}' | sort -u |
		while read -r target; do
			echo "== $package $target"
			"$go" test -run '^$' -fuzz "^$target\$" -fuzztime "$each" "$package" </dev/null
		done
done
