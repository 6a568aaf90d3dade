#!/usr/bin/env bash
# A node of the cluster, node.sh NUMBER: containerd, kubelet, kube-proxy and kube-router, in a network, file system and control groups of its own.
set -u
. "$(dirname "$0")/lib.sh"
i=$1 home=$run/nodes/node$1 keys=$run/keys log=$run/log

version=1 # of control groups
[ ! -e /sys/fs/cgroup/cgroup.controllers ] || version=2

mount -t tmpfs none /run
mkdir -p /run/netns /run/sysctl /run/net.d
umount -R /sys/fs/cgroup
mount -t sysfs none /sys # shows the node's own network
if [ $version = 2 ]; then
	mount -t cgroup2 none /sys/fs/cgroup
	mkdir /sys/fs/cgroup/init # a group that has children with controllers may have no processes
	echo $$ >/sys/fs/cgroup/init/cgroup.procs
	pass_on /sys/fs/cgroup
else
	mount -t tmpfs none /sys/fs/cgroup
	for c in $controllers; do
		mkdir "/sys/fs/cgroup/$c"
		option=$c
		[ "$c" != systemd ] || option=none,name=systemd
		mount -t cgroup -o "$option" none "/sys/fs/cgroup/$c"
	done
fi
for folder in $folders; do
	mkdir -p "$home$folder"
	mount --bind "$home$folder" "$folder"
done
# kubelet sets these for the whole machine. It finds files that have what it wants instead, and writes nothing.
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
	file=/run/sysctl/$(tr / _ <<<"${setting%=*}")
	echo "${setting#*=}" >"$file"
	mount --bind "$file" "/proc/sys/${setting%=*}"
done
mount --make-rshared / # volumes of pods pass on to containers
echo 1 >/proc/sys/net/ipv4/ip_forward
: >/run/resolv.conf

cat >/run/net.d/pods.conflist <<END
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": "$pods_net.$i.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
# A machine may lack the right to make a process less likely to be killed for memory: nobody tries.
cat >/run/containerd.toml <<END
version = 2
root = "$home/containerd"
state = "/run/containerd"
oom_score = 0
[grpc]
address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "registry.k8s.io/pause:3.10"
restrict_oom_score_adj = true
disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "$debian/usr/lib/cni"
conf_dir = "/run/net.d"
[plugins."io.containerd.internal.v1.opt"]
path = "$home/opt"
END
cat >/run/kubelet.json <<END
{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": "0.0.0.0", "cgroupDriver": "cgroupfs", "failSwapOn": false, "failCgroupV1": false,
 "authentication": {"anonymous": {"enabled": false}, "x509": {"clientCAFile": "$keys/ca.crt"}, "webhook": {"enabled": true}}, "authorization": {"mode": "Webhook"},
 "tlsCertFile": "$keys/node$i.crt", "tlsPrivateKeyFile": "$keys/node$i.key", "clusterDNS": ["$services_net.0.10"], "clusterDomain": "cluster.local",
 "resolvConf": "/run/resolv.conf", "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock", "oomScoreAdj": 0, "volumePluginDir": "$home/plugins",
 "imageGCHighThresholdPercent": 100, "evictionHard": {"memory.available": "100Mi"}}
END

containerd --config /run/containerd.toml >"$log/containerd$i.log" 2>&1 &
ctr=(ctr --address /run/containerd/containerd.sock)
until_ok 60 "${ctr[@]}" version
for image in "$cache"/images/*.tar; do "${ctr[@]}" --namespace k8s.io images import "$image"; done
kube-proxy --config="$home/proxy.json" >"$log/proxy$i.log" 2>&1 &
kubelet --config=/run/kubelet.json --kubeconfig="$keys/node$i.conf" --hostname-override="node$i" --node-ip="$nodes_net.$((10 + i))" >"$log/kubelet$i.log" 2>&1 &

ip link add cni0 type bridge # the plugin would make it with the first pod; what passes it has to pass the firewall
echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables
until_ok 120 kubectl --kubeconfig="$keys/router.conf" get "node/node$i"
kube-router --kubeconfig="$keys/router.conf" --hostname-override="node$i" --run-firewall --run-router=false --run-service-proxy=false --run-loadbalancer=false \
	--service-cluster-ip-range="$services_net.0.0/16" >"$log/router$i.log" 2>&1 &
wait
