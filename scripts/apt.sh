#!/usr/bin/env bash
# Installs packages by apt: scripts/apt.sh WHY PACKAGE…
set -euo pipefail

why=$1
shift
if ! command -v apt-get >/dev/null; then
	echo "install $*: $why" >&2
	exit 1
fi
sudo=()
if [ "$(id -u)" -ne 0 ]; then
	sudo=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" apt-get install -y -qq --no-install-recommends "$@"
