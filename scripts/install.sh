#!/usr/bin/env bash
# Installs what tests need where it is missing: they run against the real redis-server, and follow README's examples of curl.
set -euo pipefail

missing=()
for program in redis-server curl; do
	command -v "$program" >/dev/null || missing+=("$program")
done
if [ ${#missing[@]} -eq 0 ]; then
	exit 0
fi
# Tests start servers of their own: none is wanted as a service.
"$(dirname "$0")/apt.sh" "the tests need it (redis-server 7.0 or later)" "${missing[@]}"
command -v "${missing[@]}"
