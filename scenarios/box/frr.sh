# SPDX-License-Identifier: Apache-2.0
# FRR: three routers in a triangle; the cable between r1 and r2 loses everything from a moment on, and r1 finds the way
# over r3. Argument: ospf or bgp. Packages: frr, iputils-ping.
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
	cat <<-END
	router ospf
	 ospf router-id 10.255.0.$1
	 network 10.0.0.0/8 area 0
	END
	for other in $(others "$1"); do
		printf 'interface to-r%s\n ip ospf hello-interval 1\n ip ospf dead-interval 4\n' "$other"
	done
}

bgp() { # NUMBER
	cat <<-END
	router bgp 6500$1
	 no bgp ebgp-requires-policy
	 timers bgp 1 3
	END
	for other in $(others "$1"); do
		echo " neighbor $(address "$other" "$1") remote-as 6500$other"
		echo " neighbor $(address "$other" "$1") timers connect 1"
	done
	printf ' address-family ipv4 unicast\n  network 10.255.0.%s/32\n' "$1"
}

others() { for other in 1 2 3; do [ "$other" = "$1" ] || echo "$other"; done; }

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
	install -d -o frr -g frr "/var/run/frr" "/var/run/frr/r$number" "/etc/frr/r$number"
	"$protocol" "$number" > "/etc/frr/r$number/$protocol.conf"
	echo > "/etc/frr/r$number/zebra.conf"
	for daemon in zebra "${protocol}d"; do
		ip netns exec "r$number" "/usr/lib/frr/$daemon" --daemon -N "r$number" \
			-f "/etc/frr/r$number/${daemon%d}.conf" --log file:/dev/null
	done
done
while ! ip -n r1 route get 10.255.0.2 from 10.255.0.1 > /dev/null 2>&1; do sleep 0.1; done
sleep 10
(sleep 2; ip netns exec r1 tc qdisc add dev to-r2 root netem loss 100%
 ip netns exec r2 tc qdisc add dev to-r1 root netem loss 100%) &
ip netns exec r1 ping -q -i 0.01 -c 1000 -I 10.255.0.1 10.255.0.2 | sed -n "s/.*transmitted, \(.*\) received.*/\1/p" |
	while read -r received; do echo "$protocol: $(((1000 - received) * 10)) ms without a way"; done
ip -n r1 -brief route get 10.255.0.2 | sed -n "s/.* dev \(\S*\) .*/$protocol: now \1/p"
kill $(cat /var/run/frr/r*/*.pid)
