#!/usr/bin/env bash
# Process 1 of the cluster's namespaces: the bridge that joins the nodes, the control plane, and a process for each node. up.sh starts it.
set -u
. "$(dirname "$0")/lib.sh"
keys=$run/keys log=$run/log
cd "$run"
mount -t tmpfs none /run
mkdir /run/netns

ip link set lo up
ip link add br0 type bridge
ip addr add "$nodes_net.1/24" dev br0
ip link set br0 up
ip route add "$services_net.0.0/16" dev br0 # any route: kube-proxy rewrites the address before a packet leaves
echo 1 >/proc/sys/net/ipv4/ip_forward

etcd --data-dir "$run/etcd" --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
	--listen-peer-urls http://127.0.0.1:2380 >"$log/etcd.log" 2>&1 &
kube-apiserver --etcd-servers=http://127.0.0.1:2379 --service-cluster-ip-range="$services_net.0.0/16" --secure-port=6443 --advertise-address="$nodes_net.1" \
	--tls-cert-file="$keys/apiserver.crt" --tls-private-key-file="$keys/apiserver.key" --client-ca-file="$keys/ca.crt" \
	--authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged --service-account-issuer=https://kubernetes.default.svc \
	--service-account-key-file="$keys/accounts.key" --service-account-signing-key-file="$keys/accounts.key" \
	--kubelet-client-certificate="$keys/admin.crt" --kubelet-client-key="$keys/admin.key" --kubelet-certificate-authority="$keys/ca.crt" \
	--kubelet-preferred-address-types=InternalIP >"$log/apiserver.log" 2>&1 &
until_ok 120 kubectl get --raw /readyz
kube-controller-manager --kubeconfig="$keys/controllers.conf" --service-account-private-key-file="$keys/accounts.key" --root-ca-file="$keys/ca.crt" \
	--use-service-account-credentials --leader-elect=false --controllers='*,-nodeipam' --flex-volume-plugin-dir="$run/plugins" >"$log/controllers.log" 2>&1 &
kube-scheduler --kubeconfig="$keys/scheduler.conf" --leader-elect=false >"$log/scheduler.log" 2>&1 &

# proxy NAME prints the settings of a kube-proxy; sizes of the connection table are the machine's and stay.
proxy() {
	cat <<-END
		{"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "nftables", "hostnameOverride": "$1",
		 "clientConnection": {"kubeconfig": "$keys/proxy.conf"}, "clusterCIDR": "$pods_net.0.0/16",
		 "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}}
	END
}
proxy control >"$run/proxy.json" # clients of the drills run here, and connect to Services
kube-proxy --config="$run/proxy.json" >"$log/proxy.log" 2>&1 &

for i in $(seq "$NODES"); do
	mkdir -p "$run/nodes/node$i"
	proxy "node$i" >"$run/nodes/node$i/proxy.json"
	ip netns add "node$i"
	ip link add "node$i" type veth peer name eth0 netns "node$i"
	ip link set "node$i" master br0 up
	ip -n "node$i" link set lo up
	ip -n "node$i" addr add "$nodes_net.$((10 + i))/24" dev eth0
	ip -n "node$i" link set eth0 up
	ip -n "node$i" route add default via "$nodes_net.1"
	ip route add "$pods_net.$i.0/24" via "$nodes_net.$((10 + i))"
	for j in $(seq "$NODES"); do
		[ "$j" -eq "$i" ] || ip -n "node$i" route add "$pods_net.$j.0/24" via "$nodes_net.$((10 + j))"
	done
	(
		for group in $(groups); do echo "$BASHPID" >"$group/node$i/cgroup.procs"; done
		exec nsenter --net="/run/netns/node$i" unshare --mount --cgroup --propagation private bash "$here/node.sh" "$i"
	) >"$log/node$i.log" 2>&1 &
done

while :; do # process 1 reaps what others leave behind
	sleep 5 &
	wait -n
done
