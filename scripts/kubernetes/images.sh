#!/usr/bin/env bash
# Makes the images that the cluster runs, as `docker save` writes them, under the names that the chart and Kubernetes ask for: no registry is asked.
# Agora is this tree's, in two versions (drill-1, drill-2), NATS that of go.mod, and Redis the one of this machine.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# image NAME FILE ROOT CONFIG writes an image of one layer.
image() {
	local work layer
	work=$(mktemp -d)
	tar -C "$3" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf "$work/layer.tar" .
	layer=$(sha256sum "$work/layer.tar" | cut -d' ' -f1)
	printf '{"architecture":"%s","os":"linux","config":%s,"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' "$(go env GOARCH)" "$4" "$layer" >"$work/config.json"
	printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":["layer.tar"]}]' "$1" >"$work/manifest.json"
	tar -C "$work" -cf "$2" manifest.json config.json layer.tar
	rm -rf "$work"
}

# trial PART prints the name of an image that the chart brings for a trial: what it names is made here, and not fetched.
trial() { sed -n "s|^ *image: \($1:.*\)|\1|p" "$repository/helm/agora/values.yaml"; }

images=$cache/images
rm -rf "$images" && mkdir -p "$images"
roots=$(mktemp -d)
trap 'rm -rf "$roots"' EXIT
mkdir -p "$roots"/{pause,coredns,agora/{usr/bin,etc/ssl/certs,tmp},nats/tmp,redis/{usr/bin,tmp}}
chmod 1777 "$roots"/*/tmp

cp "$debian/bin/busybox" "$roots/pause/busybox"
image registry.k8s.io/pause:3.10 "$images/pause.tar" "$roots/pause" '{"Entrypoint":["/busybox","sleep","2147483647"],"User":"65535:65535"}'

cp "$cache/coredns-$COREDNS_VERSION/coredns" "$roots/coredns/"
image registry.k8s.io/coredns:drill "$images/coredns.tar" "$roots/coredns" '{"Entrypoint":["/coredns"]}'

export CGO_ENABLED=0
cp /etc/ssl/certs/ca-certificates.crt "$roots/agora/etc/ssl/certs/"
for version in drill-1 drill-2; do # as deploy/Dockerfile builds it
	(cd "$repository" && go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X github.com/agora-relay/agora/cmd/agora/version.release=$version" -o "$roots/agora/usr/bin/agora" ./cmd/agora)
	image "ghcr.io/agora-relay/agora:$version" "$images/agora-$version.tar" "$roots/agora" '{"Entrypoint":["/usr/bin/agora"],"Cmd":["--help"],"User":"65532:65532","Env":["PATH=/usr/bin"]}'
done

(cd "$repository" && go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$roots/nats/nats-server" github.com/nats-io/nats-server/v2)
image "docker.io/library/$(trial nats)" "$images/nats.tar" "$roots/nats" '{"Entrypoint":["/nats-server"]}'

for program in redis-server redis-cli; do
	cp "$(command -v "$program")" "$roots/redis/usr/bin/"
	ldd "$(command -v "$program")" | grep -oE '/[^ )]+' | sort -u | while read -r library; do install -D "$library" "$roots/redis$library"; done
done
image "docker.io/library/$(trial redis)" "$images/redis.tar" "$roots/redis" '{"Cmd":["redis-server"],"Env":["PATH=/usr/bin"],"WorkingDir":"/tmp"}'
