# shellcheck shell=bash
# What the scripts of this folder share: versions, folders, addresses. Each sources it: . "$(dirname "$0")/lib.sh"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)

KUBERNETES_VERSION=1.34.4 COREDNS_VERSION=1.13.1 KUBE_ROUTER_VERSION=2.1.0 HELM_VERSION=4.3.1

NODES=${NODES:-3}
nodes_net=10.210.0 # .1 is the control plane, .11 the first node
pods_net=10.211    # the third number is the node's
services_net=10.212

cache=$(realpath -m "${KUBERNETES_CACHE:-$repository/bin/kubernetes}") # programs and images; stays
run=$cache/run                                        # of a cluster that is up: keys, logs, data
debian=$cache/debian                                  # packages of Debian, unpacked and not installed

programs=$cache/kubernetes-$KUBERNETES_VERSION:$cache/coredns-$COREDNS_VERSION:$cache/kube-router-$KUBE_ROUTER_VERSION:$cache/helm-$HELM_VERSION
libraries=$debian/usr/lib/$(uname -m)-linux-gnu
# What a command needs that uses what was unpacked.
environment=("PATH=$programs:$debian/usr/sbin:$debian/usr/bin:$debian/bin:$PATH" "LD_LIBRARY_PATH=$libraries" "XTABLES_LIBDIR=$libraries/xtables" "KUBECONFIG=$run/keys/admin.conf")

# The folders of control groups below which a node has one of its own: of version 2 there is one, of version 1 one for each controller.
controllers="cpu cpuacct cpuset memory devices freezer blkio pids systemd"
groups() {
	if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
		echo /sys/fs/cgroup/agora-kubernetes
	else
		for c in $controllers; do echo "/sys/fs/cgroup/$c/agora-kubernetes"; done
	fi
}

# The folders of the machine that kubelet has by fixed names: each node mounts its own there.
folders="/var/lib/kubelet /var/log/pods /var/log/containers"

# is_up reports whether a cluster is up: the process that its file names may be another one's after a restart of the machine.
is_up() { [ -e "$run/pid" ] && grep -qsF "$here/control.sh" "/proc/$(cat "$run/pid")/cmdline"; }

# pass_on GROUP lets the children of a group of version 2 have all controllers that it has itself.
pass_on() { sed -E 's/[a-z_]+/+&/g' "$1/cgroup.controllers" >"$1/cgroup.subtree_control"; }

# until_ok SECONDS COMMAND… repeats a command until it succeeds.
until_ok() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		if [ $SECONDS -ge $end ]; then
			echo "waited in vain for: $*" >&2
			return 1
		fi
		sleep 0.5
	done
}
