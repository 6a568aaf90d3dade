#!/usr/bin/env bash
# make kubernetes: brings a real Kubernetes of three nodes up on this machine, installs the chart in it in a namespace where Pod Security is
# restricted, and plays drills under numbered load: rollouts, faults, losses of nodes. Their table is printed and stays in bin/kubernetes/table.md.
# The status is not 0 if anything was lost, doubled, out of order, or listed without being connected.
#
# KEEP=1 leaves the cluster up, also when a drill fails, and uses one that is up: scripts/kubernetes/in.sh runs a command in it, scripts/kubernetes/down.sh ends it.
# DRILLS="rollout,node drain" plays these alone; SETTINGS="config.session\.heartbeat=15s,replicas=4" are values of the chart besides its own.
#
# Needs root, Debian with cgroups of version 1 or 2, 8 GB of memory, 10 GB of disk, Go, and its module proxy. The first run builds Kubernetes,
# which takes twenty minutes of two processors; later ones have it in bin/kubernetes, or where KUBERNETES_CACHE says.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
if [ "$(id -u)" -ne 0 ]; then
	echo "run it as root: it makes namespaces, networks and control groups" >&2
	exit 1
fi
[ -n "${KEEP:-}" ] || trap '"$here/down.sh"' EXIT

"$here/build.sh"
if ! is_up; then
	"$here/images.sh"
	"$here/up.sh"
fi
(cd "$repository" && CGO_ENABLED=0 go build -o "$cache/drills" ./internal/drills)
"$here/in.sh" "$cache/drills" -chart "$repository/helm/agora" -only "${DRILLS:-}" -set "${SETTINGS:-}" | tee "$cache/table.md"
