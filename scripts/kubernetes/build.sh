#!/usr/bin/env bash
# Builds Kubernetes, CoreDNS, kube-router and helm of Go modules, and unpacks containerd, runc, etcd and iptables of Debian packages.
# All of it lands in a cache and is not built again; what is installed on the machine is named in tools.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

tools() {
	declare -A package=([openssl]=openssl [curl]=curl [ip]=iproute2 [nsenter]=util-linux [redis-server]=redis-server)
	local missing=() tool
	for tool in "${!package[@]}"; do
		command -v "$tool" >/dev/null || missing+=("${package[$tool]}")
	done
	[ ${#missing[@]} -eq 0 ] || "$repository/scripts/apt.sh" "a cluster of Kubernetes needs it" "${missing[@]}"
}

unpack() {
	local done=$debian/done
	[ ! -e "$done" ] || return 0
	rm -rf "$debian" && mkdir -p "$debian/packages"
	# apt-get download resolves nothing: the libraries that the programs need stand here as well.
	(cd "$debian/packages" && apt-get update -qq && apt-get -o APT::Sandbox::User=root download -qq containerd runc etcd-server containernetworking-plugins iptables nftables \
		conntrack ipset busybox-static libip4tc2 libip6tc2 libnftables1 libxtables12 libnetfilter-conntrack3 libnfnetlink0 libnftnl11 libmnl0 \
		libipset13 libjansson4 libedit2 libbsd0 libmd0 libgmp10 libtinfo6 libseccomp2)
	local deb tool
	for deb in "$debian"/packages/*.deb; do dpkg-deb -x "$deb" "$debian"; done
	for tool in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
		ln -sf xtables-nft-multi "$debian/usr/sbin/$tool" # as update-alternatives does
	done
	rm -rf "$debian/packages"
	touch "$done"
}

# compile DIRECTORY NAME PACKAGE FLAGS… builds a package of the module in the current folder, unless it is there.
compile() {
	local out=$1/$2
	[ ! -e "$out" ] || return 0
	echo "builds $2"
	[ -e go.sum ] || go mod tidy >/dev/null 2>&1 || go mod tidy
	nice -n 10 go build -trimpath -buildvcs=false -ldflags "-s -w ${*:4}" -o "$out.new" "$3"
	mv "$out.new" "$out"
}

# module NAME begins a module in a temporary folder.
module() {
	rm -rf "$work/$1" && mkdir -p "$work/$1" && cd "$work/$1"
	printf 'module %s\n\ngo 1.26\n' "$1" >go.mod
}

# Kubernetes builds from a module that requires it: its own go.mod takes its libraries from folders that the module proxy's archive lacks, and
# versions of their own stand for those. What it says of its version is set by the linker: helm and kubelet compare it.
kubernetes() {
	local out=$cache/kubernetes-$KUBERNETES_VERSION program names="kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl" from flags="" package
	module kubernetes
	from=$(go mod download -json "k8s.io/kubernetes@v$KUBERNETES_VERSION" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
	{
		printf '\nrequire k8s.io/kubernetes v%s\n\nreplace (\n' "$KUBERNETES_VERSION"
		sed -n "s|.*\(k8s.io/[a-z0-9-]*\) => ./staging/src/.*|\t\1 => \1 v0.${KUBERNETES_VERSION#1.}|p" "$from"
		echo ')'
	} >>go.mod
	printf '//go:build tools\n\npackage kubernetes\n\n' >tools.go
	for program in $names; do printf 'import _ "k8s.io/kubernetes/cmd/%s"\n' "$program" >>tools.go; done
	for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		flags+=" -X $package.gitVersion=v$KUBERNETES_VERSION -X $package.gitMajor=1 -X $package.gitMinor=$(cut -d. -f2 <<<"$KUBERNETES_VERSION")"
		flags+=" -X $package.gitTreeState=clean -X $package.gitCommit=unknown -X $package.buildDate=2026-01-01T00:00:00Z"
	done
	for program in $names; do compile "$out" "$program" "k8s.io/kubernetes/cmd/$program" "$flags"; done
}

# CoreDNS with the plugins that answer for Services, and no others: the rest would take minutes to build.
coredns() {
	local plugin
	module coredns
	{
		printf 'package main\n\nimport (\n\t"github.com/coredns/coredns/core/dnsserver"\n\t"github.com/coredns/coredns/coremain"\n'
		for plugin in health ready errors cache kubernetes; do printf '\t_ "github.com/coredns/coredns/plugin/%s"\n' "$plugin"; done
		printf ')\n\nfunc main() {\n\tdnsserver.Directives = []string{"health", "ready", "errors", "cache", "kubernetes"}\n\tcoremain.Run()\n}\n'
	} >main.go
	printf '\nrequire github.com/coredns/coredns v%s\n' "$COREDNS_VERSION" >>go.mod
	compile "$cache/coredns-$COREDNS_VERSION" coredns .
}

# kube-router enforces NetworkPolicies.
kube_router() {
	module kuberouter
	printf '//go:build tools\n\npackage kuberouter\n\nimport _ "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"\n' >tools.go
	printf '\nrequire github.com/cloudnativelabs/kube-router/v2 v%s\n' "$KUBE_ROUTER_VERSION" >>go.mod
	compile "$cache/kube-router-$KUBE_ROUTER_VERSION" kube-router github.com/cloudnativelabs/kube-router/v2/cmd/kube-router
}

helm() {
	module helm
	printf '//go:build tools\n\npackage helm\n\nimport _ "helm.sh/helm/v4/cmd/helm"\n' >tools.go
	printf '\nrequire helm.sh/helm/v4 v%s\n' "$HELM_VERSION" >>go.mod
	compile "$cache/helm-$HELM_VERSION" helm helm.sh/helm/v4/cmd/helm
}

tools
unpack
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CGO_ENABLED=0 GOFLAGS=-mod=mod
kubernetes
coredns
kube_router
helm
