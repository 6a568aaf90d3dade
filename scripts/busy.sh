#!/usr/bin/env bash
# Runs a command while busy loops take every processor, one loop each, and ends with its status:
# scripts/busy.sh make test
# No test may fail for that.
set -euo pipefail
if [ $# -eq 0 ]; then
	echo "usage: scripts/busy.sh COMMAND [ARGUMENT ...]" >&2
	exit 2
fi
loops=()
trap 'kill "${loops[@]}" 2>/dev/null || true' EXIT
for _ in $(seq "$(nproc)"); do
	while :; do :; done &
	loops+=($!)
done
"$@"
