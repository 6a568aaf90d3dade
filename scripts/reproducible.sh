#!/usr/bin/env bash
# Builds agora twice as deploy/Dockerfile does, from copies of the source in two folders and with two empty caches, and
# fails unless both are the same program byte by byte. Takes some minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(sed -n 's/^RUN \(go build .*\) -o .*/\1/p' deploy/Dockerfile)
[ -n "$build" ] || { echo "deploy/Dockerfile has no go build line"; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for k in first second; do
	mkdir -p "$dir/$k/src"
	git ls-files -z | tar --null -T - -c | tar -x -C "$dir/$k/src"
	(
		cd "$dir/$k/src"
		export CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS=-mod=readonly GOCACHE="$dir/$k/cache" VERSION=v0.0.0
		eval "$build -o $dir/$k/agora ./cmd/agora"
	)
	rm -rf "$dir/$k/cache"
done
sha256sum "$dir/first/agora" "$dir/second/agora"
"$dir/first/agora" version | grep -qx "agora v0.0.0" || { echo "the program does not say the version that it was given"; exit 1; }
cmp "$dir/first/agora" "$dir/second/agora" && echo "both are the same"
