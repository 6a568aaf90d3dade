#!/usr/bin/env bash
# Deploys this tree's edge over an older one and back, under load, and counts what is lost:
# scripts/rolling.sh COMMIT [SECONDS]
# Three edges of COMMIT are one cluster, with one NATS server and one Redis. Senders send through all of them. One edge after the other is drained
# and becomes this tree's, and then COMMIT's again; the cluster stays mixed for SECONDS (10) after each. This tree's senders and COMMIT's run side by side.
# The status is not 0 if anything was lost, doubled, out of order, refused or aborted.
set -euo pipefail
if [ $# -eq 0 ]; then
	echo "usage: scripts/rolling.sh COMMIT [SECONDS]" >&2
	exit 2
fi
cd "$(dirname "$0")/.."
commit=$(git rev-parse --verify --short "$1^{commit}") hold=${2:-10}
dir=$(mktemp -d)

cleanup() {
	jobs -p | xargs -r kill 2>/dev/null || true
	wait || true
	git worktree remove --force "$dir/source" 2>/dev/null || true
	rm -rf "$dir"
}
trap cleanup EXIT

# free sets port to one of loopback that nobody listens at; each call another one.
port=$((20000 + RANDOM % 10000))
free() {
	while port=$((port + 1)); (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
}

# until_ok repeats a command until it succeeds, for a minute at most.
until_ok() {
	for _ in $(seq 300); do
		if "$@" >/dev/null 2>&1; then return; fi
		sleep 0.2
	done
	echo "waited in vain for: $*" >&2
	tail -n 20 "$dir"/*.log >&2
	exit 1
}

scripts/install.sh
echo "builds $commit and this tree"
git worktree add --quiet --detach "$dir/source" "$commit"
(cd "$dir/source" && go build -o "$dir/old" ./cmd/agora)
go build -o "$dir/new" ./cmd/agora
go build -o "$dir/nats" github.com/nats-io/nats-server/v2

free && nats=$port
printf 'max_payload: 8MB\n' >"$dir/nats.conf" # serves every frame
"$dir/nats" -c "$dir/nats.conf" -a 127.0.0.1 -p "$nats" -js -sd "$dir/log" >"$dir/nats.log" 2>&1 &
free && redis=$port
redis-server --bind 127.0.0.1 --port "$redis" --dir "$dir" --save '' --maxmemory-policy noeviction >"$dir/redis.log" 2>&1 &
until_ok bash -c "exec 3<>/dev/tcp/127.0.0.1/$nats"
until_ok bash -c "exec 3<>/dev/tcp/127.0.0.1/$redis"

addr=() admin=() pid=()
for i in 0 1 2; do
	free && addr[i]=127.0.0.1:$port
	free && admin[i]=127.0.0.1:$port
done

# edge starts edge $1 of the program $2, and waits until it is ready.
edge() {
	"$dir/$2" edge --addr "${addr[$1]}" --admin-addr "${admin[$1]}" --grpc-addr none --p2p-addr none --id "edge-$1" --auth none \
		--nats.url "nats://127.0.0.1:$nats" --nats.replicas 1 --redis.url "redis://127.0.0.1:$redis" --drain.delay 1s >>"$dir/edge-$1.log" 2>&1 &
	pid[$1]=$!
	until_ok curl -fsS "http://${admin[$1]}/readyz"
}

# roll replaces one edge after the other by the program $1.
roll() {
	for i in 0 1 2; do
		kill -TERM "${pid[i]}"
		if ! wait "${pid[i]}"; then
			echo "edge $i did not end well" >&2
			tail -n 20 "$dir/edge-$i.log" >&2
			exit 1
		fi
		edge "$i" "$1"
		echo "edge $i is $1"
		sleep "$hold"
	done
}

for i in 0 1 2; do edge "$i" old; done
all=$(IFS=,; echo "${addr[*]/#/ws://}")
load=()
for program in old new; do
	"$dir/$program" bench soak --edges "$all" --duration 1h --rate 500 --cuts 0.5 --progress 0 --json >"$dir/$program.json" 2>"$dir/load-$program.log" &
	load+=($!)
done
sleep "$hold"
roll new
roll old

kill -INT "${load[@]}"
status=0
for i in 0 1; do wait "${load[i]}" || status=$?; done
for program in old new; do
	total=$(grep -o '"total":{[^}]*}' "$dir/$program.json")
	echo "clients of $program: $total"
	case $total in
	*'"refused":0,'*'"aborted":0,'*'"lost":0,"duplicated":0,"reordered":0,'*) ;;
	*) status=1 ;;
	esac
done
if [ "$status" -ne 0 ]; then
	echo "something was lost, doubled, out of order, refused or aborted" >&2
fi
exit "$status"
