#!/usr/bin/env bash
# Measures this tree next to an older commit, in turns, and prints medians and their ratio:
# scripts/compare.sh COMMIT [RUNS] [LOADS]
# RUNS (5) of each; LOADS (saturated-200,paced,fanout,idle) are those of the module bench. Both are driven by this tree's clients.
# A ratio of "server us" below 1 says that this tree takes less CPU for each message; nothing else may run meanwhile.
set -euo pipefail
if [ $# -eq 0 ]; then
	echo "usage: scripts/compare.sh COMMIT [RUNS] [LOADS]" >&2
	exit 2
fi
cd "$(dirname "$0")/.."
commit=$(git rev-parse --verify --short "$1^{commit}") runs=${2:-5} loads=${3:-saturated-200,paced,fanout,idle}
dir=$(mktemp -d)
trap 'git worktree remove --force "$dir/old" 2>/dev/null || true; rm -rf "$dir"' EXIT

scripts/install.sh
git worktree add --quiet --detach "$dir/old" "$commit"
(cd bench && go build -o "$dir/bench" .)
for run in $(seq "$runs"); do
	trees=(old new) # and the other way round next time: what a machine does slower by and by is done to both
	if ((run % 2 == 0)); then trees=(new old); fi
	for tree in "${trees[@]}"; do
		module=$PWD
		if [ "$tree" = old ]; then module=$dir/old; fi
		(cd bench && "$dir/bench" -module "$module" -cache "$dir/cache-$tree" -only agora-r1 -load "$loads" -time 5s) 2>&1 | sed -n "s/^run 1 /$tree $run /p"
	done
done | tee "$dir/lines" | sed 's/^/  /'

echo
printf '%-16s %-12s %12s %12s %8s\n' load median "$commit" "this tree" ratio
awk '
function number(s) { gsub(/,/, "", s); return s + 0 }
{
	load = $4; seen[load] = 1
	for (i = 5; i < NF; i++) {
		if ($(i + 1) ~ /\/s$/) add("rate", number($i))
		if ($i == "server") add("server us", number($(i + 1)))
		if ($(i + 1) == "KiB") add("KiB an agent", number($i))
		if ($(i + 1) == "MiB") add("MiB", number($i))
		if ($i == "p50") add("p50 us", number($(i + 1)))
	}
}
function add(what, v) { k = $1 SUBSEP load SUBSEP what; all[k, ++n[k]] = v; kinds[what] = 1 }
function median(k,    i, j, t, a, m) {
	m = n[k]
	for (i = 1; i <= m; i++) a[i] = all[k, i]
	for (i = 2; i <= m; i++) for (j = i; j > 1 && a[j - 1] > a[j]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
	return m % 2 ? a[(m + 1) / 2] : (a[m / 2] + a[m / 2 + 1]) / 2
}
END {
	for (load in seen) for (what in kinds) {
		o = "old" SUBSEP load SUBSEP what; w = "new" SUBSEP load SUBSEP what
		if (n[o] && n[w] && median(o)) printf "%-16s %-12s %12.2f %12.2f %8.3f\n", load, what, median(o), median(w), median(w) / median(o)
	}
}' "$dir/lines" | sort
