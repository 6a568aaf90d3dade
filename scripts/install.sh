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
if ! command -v apt-get >/dev/null; then
	echo "install ${missing[*]} (redis-server 7.0 or later): the tests need it" >&2
	exit 1
fi
sudo=()
if [ "$(id -u)" -ne 0 ]; then
	sudo=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -qq
# Tests start servers of their own: none is wanted as a service.
"${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
command -v "${missing[@]}"
