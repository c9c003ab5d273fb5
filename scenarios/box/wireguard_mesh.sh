# SPDX-License-Identifier: Apache-2.0
# A mesh of four WireGuard peers behind one bridge: each pings each. Packages: wireguard-tools, iputils-ping.
set -e
umask 077
nodes="1 2 3 4"
ip netns add lan
ip -n lan link add bridge type bridge
ip -n lan link set bridge up
for node in $nodes; do
	ip netns add "peer$node"
	ip link add eth0 netns "peer$node" type veth peer name "peer$node" netns lan
	ip -n lan link set "peer$node" master bridge up
	ip -n "peer$node" address add "192.0.2.$node/24" dev eth0
	ip -n "peer$node" link set eth0 up
	ip netns exec "peer$node" tc qdisc add dev eth0 root netem delay "${node}0ms"
	wg genkey > "/run/key$node"
done
for node in $nodes; do
	ip -n "peer$node" link add wg0 type wireguard
	ip netns exec "peer$node" wg set wg0 listen-port 51820 private-key "/run/key$node"
	for other in $nodes; do
		[ "$other" = "$node" ] || ip netns exec "peer$node" wg set wg0 peer "$(wg pubkey < "/run/key$other")" \
			endpoint "192.0.2.$other:51820" allowed-ips "10.9.0.$other/32"
	done
	ip -n "peer$node" address add "10.9.0.$node/24" dev wg0
	ip -n "peer$node" link set wg0 up
done
for node in $nodes; do
	for other in $nodes; do
		[ "$other" = "$node" ] && continue
		ip netns exec "peer$node" ping -q -c 1 "10.9.0.$other" > /dev/null    # the handshake
		ip netns exec "peer$node" ping -q -c 5 -i 0.2 "10.9.0.$other" |
			sed -n "s/^rtt [^=]*= \([^/]*\).*/$node to $other: \1 ms/p"
	done
done
