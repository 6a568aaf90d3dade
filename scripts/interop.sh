#!/usr/bin/env bash
# Installs what clients of other languages need where it is missing: programs by apt, libraries and what is built into bin/interop.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
need() { # program package…
	command -v "$1" >/dev/null || missing+=("${@:2}")
}
need node nodejs npm
need npm npm
need python3 python3 python3-venv
need curl curl
need nghttp nghttp2-client
need stdbuf coreutils
if command -v python3 >/dev/null && ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
	missing+=(python3-venv)
fi
if [ ${#missing[@]} -gt 0 ]; then
	scripts/apt.sh "the clients of other languages need it" "${missing[@]}"
fi

# What is installed lies beside a copy of the file that asked for it: as long as both are the same, nothing is fetched.
at=bin/interop
for door in iat aip p2p mcp asyncapi; do
	from=interop/$door
	mkdir -p "$at/$door/node"
	if ! cmp -s "$from/package-lock.json" "$at/$door/node/installed"; then
		cp "$from/package.json" "$from/package-lock.json" "$at/$door/node"
		(cd "$at/$door/node" && npm ci --ignore-scripts --no-audit --no-fund --loglevel error)
		cp "$from/package-lock.json" "$at/$door/node/installed"
	fi
	[ -f "$from/requirements.txt" ] || continue
	if ! cmp -s "$from/requirements.txt" "$at/$door/venv/installed"; then
		python3 -m venv --clear "$at/$door/venv"
		"$at/$door/venv/bin/pip" install --quiet --disable-pip-version-check -r "$from/requirements.txt"
		cp "$from/requirements.txt" "$at/$door/venv/installed"
	fi
done

# Programs in Go are built as they are, outside of this module: nothing that they need gets into its go.mod.
if ! cmp -s interop/aip/programs.txt "$at/go/installed"; then
	while read -r program; do
		GOFLAGS='' GOBIN="$PWD/$at/go" "${GO:-go}" install -trimpath "$program"
	done <interop/aip/programs.txt
	cp interop/aip/programs.txt "$at/go/installed"
fi
