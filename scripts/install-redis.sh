#!/usr/bin/env bash
# Installs redis-server where it is missing: tests run against the real one.
set -euo pipefail

if command -v redis-server >/dev/null; then
	exit 0
fi
if ! command -v apt-get >/dev/null; then
	echo "install redis-server (7.0 or later): the tests need it" >&2
	exit 1
fi
sudo=()
if [ "$(id -u)" -ne 0 ]; then
	sudo=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -qq
# Tests start servers of their own: none is wanted as a service.
"${sudo[@]}" apt-get install -y -qq --no-install-recommends redis-server
command -v redis-server
