# SPDX-License-Identifier: Apache-2.0
# Three routers in a triangle, with BIRD. The cable between r1 and r2 loses everything from a moment on, and r1 finds
# the way over r3. Argument: ospf or bgp. Packages: bird2, iputils-ping.
set -e
protocol=$1

link() { # NODE ADDRESS NODE ADDRESS
	ip link add "to-$3" netns "$1" type veth peer name "to-$1" netns "$3"
	ip -n "$1" address add "$2/24" dev "to-$3"
	ip -n "$3" address add "$4/24" dev "to-$1"
	ip -n "$1" link set "to-$3" up
	ip -n "$3" link set "to-$1" up
}

# Timers of seconds, so that a neighbour is dead after 4 s (OSPF) or 3 s (BGP).
ospf() { # NUMBER
	echo 'protocol ospf { ipv4 { import all; }; area 0 {
		interface "to-*" { type ptp; hello 1; dead 4; }; interface "lo" { stub; }; }; }'
}

bgp() { # NUMBER
	echo 'protocol direct { ipv4; interface "lo"; }'
	for other in 1 2 3; do
		[ "$other" = "$1" ] || echo "protocol bgp {
			local $(address "$1" "$other") as 6500$1; neighbor $(address "$other" "$1") as 6500$other;
			connect delay time 1; hold time 3; keepalive time 1;
			ipv4 { import all; export all; next hop self; }; }"
	done
}

address() { # NUMBER OTHER: of the first, on the cable to the other
	if [ "$1" -lt "$2" ]; then echo "10.$1.$2.1"; else echo "10.$2.$1.2"; fi
}

for number in 1 2 3; do
	ip netns add "r$number"
	ip -n "r$number" link set lo up
	ip -n "r$number" address add "10.255.0.$number/32" dev lo
	ip netns exec "r$number" sysctl -qw net.ipv4.ip_forward=1
done
link r1 10.1.2.1 r2 10.1.2.2
link r1 10.1.3.1 r3 10.1.3.2
link r2 10.2.3.1 r3 10.2.3.2

for number in 1 2 3; do
	(echo "router id 10.255.0.$number; protocol device { }"
	 echo 'protocol kernel { ipv4 { export where source != RTS_DEVICE; }; }'
	 "$protocol" "$number") > "/etc/r$number.conf"
	ip netns exec "r$number" bird -c "/etc/r$number.conf" -s "/run/r$number" -P "/run/r$number.pid"
done
sleep 10
(sleep 2; ip netns exec r1 tc qdisc add dev to-r2 root netem loss 100%
 ip netns exec r2 tc qdisc add dev to-r1 root netem loss 100%) &
ip netns exec r1 ping -q -i 0.01 -c 1000 -I 10.255.0.1 10.255.0.2 |
	awk -v name="$protocol" '/transmitted/ { printf "%s: %d ms without a way\n", name, ($1 - $4) * $NF / ($1 - 1) }'
ip -n r1 -o route get 10.255.0.2 | sed -n "s/.* dev \(\S*\) .*/$protocol: now \1/p"
kill $(cat /run/r?.pid)
