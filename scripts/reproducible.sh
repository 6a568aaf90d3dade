#!/usr/bin/env bash
# Builds a release twice, from copies of the source in two folders and with two empty caches, and fails unless both are the same byte by
# byte: archives, SBOMs, image, chart. TARGETS says for which platforms, the image's by default. Takes some minutes for each.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
(cd release && go build -o "$dir/release" .)
export SOURCE_DATE_EPOCH=1000000000
for k in first second; do
	mkdir -p "$dir/$k/src"
	git ls-files -z | tar --null -T - -c | tar -x -C "$dir/$k/src"
	"$dir/release" -root "$dir/$k/src" -version v0.0.0 -targets "${TARGETS:-linux/amd64,linux/arm64}" -cache "$dir/$k/cache" -out "$dir/$k/out"
	rm -rf "$dir/$k/cache"
done
cat "$dir/first/out/SHA256SUMS"
(cd "$dir/first/out" && sha256sum --quiet -c SHA256SUMS)
diff -r "$dir/first/out" "$dir/second/out"
tar -xzf "$dir/first/out/agora-v0.0.0-linux-amd64.tar.gz" -C "$dir"
said=$("$dir/agora-v0.0.0-linux-amd64/agora" version)
[ "$said" = "agora v0.0.0" ] || { echo "the program does not say the version that it was given: $said"; exit 1; }
echo "both are the same"
