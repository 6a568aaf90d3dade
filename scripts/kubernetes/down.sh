#!/usr/bin/env bash
# Ends the cluster that up.sh has started, with all that runs in it, and removes its data; logs stay in run/log of the cache.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
if is_up; then
	pid=$(cat "$run/pid")
	kill -KILL "$pid"
	until_ok 30 bash -c "! kill -0 $pid"
fi
# What ended a moment ago may still be in its control group.
gone() {
	local group
	for group in $(groups); do
		[ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} +
	done
}
until_ok 30 gone
[ ! -e "$run/made" ] || xargs rmdir <"$run/made"
[ ! -d "$run/nodes" ] || (cd "$run/nodes" && find . -path '*/var/log/pods/*' -name '*.log' -exec cp --parents {} "$run/log" \;)
rm -rf "$run"/{pid,made,plugins,keys,nodes,etcd,proxy.json}
