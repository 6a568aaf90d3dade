#!/usr/bin/env bash
# Installs what clients of other languages need where it is missing: programs by apt, libraries into bin/interop.
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
mkdir -p "$at/node"
if ! cmp -s interop/iat/package-lock.json "$at/node/installed"; then
	cp interop/iat/package.json interop/iat/package-lock.json "$at/node"
	(cd "$at/node" && npm ci --ignore-scripts --no-audit --no-fund --loglevel error)
	cp interop/iat/package-lock.json "$at/node/installed"
fi
if ! cmp -s interop/iat/requirements.txt "$at/venv/installed"; then
	python3 -m venv --clear "$at/venv"
	"$at/venv/bin/pip" install --quiet --disable-pip-version-check -r interop/iat/requirements.txt
	cp interop/iat/requirements.txt "$at/venv/installed"
fi
