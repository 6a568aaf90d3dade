#!/usr/bin/env bash
# Runs a command in the network of the cluster's control plane, which reaches nodes, pods and Services: scripts/kubernetes/in.sh kubectl get pods -A
set -euo pipefail
. "$(dirname "$0")/lib.sh"
exec nsenter --target "$(cat "$run/pid")" --mount --net --pid env -C "$PWD" "${environment[@]}" "$@"
