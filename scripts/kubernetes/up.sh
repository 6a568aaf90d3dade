#!/usr/bin/env bash
# Brings a cluster of Kubernetes up: a control plane and NODES nodes, 3 if not said, in namespaces of their own of this machine, with its real
# kernel. Returns when the nodes are ready and names are resolved. down.sh ends it; in.sh runs a command in it. Needs root, and what build.sh and images.sh made.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
if is_up; then
	echo "a cluster is up already: scripts/kubernetes/down.sh ends it" >&2
	exit 1
fi
rm -rf "$run" && mkdir -p "$run"/{keys,log,nodes}

for folder in $folders; do
	[ -d "$folder" ] || { mkdir "$folder" && echo "$folder" >>"$run/made"; }
done

# One authority signs all.
cd "$run/keys"
openssl ecparam -genkey -name prime256v1 -noout -out ca.key
openssl req -x509 -new -key ca.key -subj /CN=ca -days 30 -out ca.crt
openssl ecparam -genkey -name prime256v1 -noout -out accounts.key # signs tokens of service accounts

# certificate NAME SUBJECT [NAMES]
certificate() {
	openssl ecparam -genkey -name prime256v1 -noout -out "$1.key"
	openssl req -new -key "$1.key" -subj "$2" -out "$1.csr"
	openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -out "$1.crt" \
		-extfile <(printf 'extendedKeyUsage=serverAuth,clientAuth\n%s\n' "${3:+subjectAltName=$3}") 2>/dev/null
}

# user NAME SUBJECT [NAMES] makes a certificate, and the file by which a program is that user.
user() {
	certificate "$@"
	cat >"$1.conf" <<-END
		{"apiVersion": "v1", "kind": "Config", "current-context": "drill", "contexts": [{"name": "drill", "context": {"cluster": "drill", "user": "me"}}],
		 "clusters": [{"name": "drill", "cluster": {"server": "https://$nodes_net.1:6443", "certificate-authority": "$PWD/ca.crt"}}],
		 "users": [{"name": "me", "user": {"client-certificate": "$PWD/$1.crt", "client-key": "$PWD/$1.key"}}]}
	END
}
certificate apiserver /CN=apiserver "IP:$nodes_net.1,IP:$services_net.0.1,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
user admin /O=system:masters/CN=admin
user controllers /CN=system:kube-controller-manager
user scheduler /CN=system:kube-scheduler
user proxy /CN=system:kube-proxy
user router /O=system:masters/CN=kube-router
for i in $(seq "$NODES"); do user "node$i" "/O=system:nodes/CN=system:node:node$i" "IP:$nodes_net.$((10 + i)),DNS:node$i"; done

# A node sees no control groups but those below its own.
for group in $(groups); do
	mkdir -p "$group"
	case $group in
	/sys/fs/cgroup/agora-kubernetes)
		pass_on /sys/fs/cgroup
		pass_on "$group"
		;;
	*/cpuset/*) # a child of version 1 has no processors before it is given some; from here on it has its parent's
		cat "$group/../cpuset.cpus" >"$group/cpuset.cpus"
		cat "$group/../cpuset.mems" >"$group/cpuset.mems"
		echo 1 >"$group/cgroup.clone_children"
		;;
	esac
	for i in $(seq "$NODES"); do mkdir -p "$group/node$i"; done
done

env "${environment[@]}" setsid unshare --mount --net --pid --fork --kill-child --mount-proc --propagation private \
	bash "$here/control.sh" >"$run/log/control.log" 2>&1 </dev/null &
outer=$!
until_ok 10 pgrep -P "$outer"
pgrep -P "$outer" >"$run/pid" # process 1 of the namespaces: all that runs in the cluster dies with it

kubectl=("$here/in.sh" kubectl)
until_ok 120 "${kubectl[@]}" get --raw /readyz
sed "s/SERVICES_NET/$services_net/" "$here/cluster.yaml" | "${kubectl[@]}" apply -f - >/dev/null
for i in $(seq "$NODES"); do
	until_ok 120 "${kubectl[@]}" get "node/node$i"
	"${kubectl[@]}" label "node/node$i" "topology.kubernetes.io/zone=zone$i" >/dev/null
	for k in 1 2 3; do # a provisioner's work: volumes for those who claim some
		mkdir -p "$run/nodes/node$i/volumes/$k"
		"${kubectl[@]}" apply -f - >/dev/null <<-END
			apiVersion: v1
			kind: PersistentVolume
			metadata: { name: node$i-$k }
			spec:
			  capacity: { storage: 100Gi }
			  accessModes: [ReadWriteOnce]
			  storageClassName: local
			  local: { path: $run/nodes/node$i/volumes/$k }
			  nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [{ key: kubernetes.io/hostname, operator: In, values: [node$i] }] }] } }
		END
	done
done
"${kubectl[@]}" wait --for=condition=Ready node --all --timeout=120s >/dev/null
"${kubectl[@]}" -n kube-system rollout status deployment/coredns --timeout=120s >/dev/null
"${kubectl[@]}" version
