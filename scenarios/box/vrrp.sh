# SPDX-License-Identifier: Apache-2.0
# VRRP: keepalived on two gateways with one address. The first gateway's cable is pulled; the second has the address
# after three advertisements, and its skew, did not come. Packages: keepalived, iputils-ping.
set -e
ip netns add lan
ip -n lan link add bridge type bridge
ip -n lan link set bridge up
for node in host:9 first:1 second:2; do
	name=${node%:*}
	ip netns add "$name"
	ip link add eth0 netns "$name" type veth peer name "$name" netns lan
	ip -n lan link set "$name" master bridge up
	ip -n "$name" link set lo up
	ip -n "$name" address add "192.0.2.${node#*:}/24" dev eth0
	ip -n "$name" link set eth0 up
done
for gateway in first:150 second:100; do
	name=${gateway%:*}
	cat > "/etc/$name.conf" <<-END
	vrrp_instance gateway {
		state BACKUP
		interface eth0
		virtual_router_id 7
		priority ${gateway#*:}
		advert_int 1
		virtual_ipaddress { 192.0.2.254/24 }
	}
	END
	ip netns exec "$name" keepalived --vrrp --use-file "/etc/$name.conf" --pid "/run/$name.pid" --vrrp_pid "/run/$name-vrrp.pid"
done
sleep 6
(sleep 2.5; ip -n lan link set first down) &
ip netns exec host ping -q -i 0.01 -c 1000 192.0.2.254 |
	awk '/transmitted/ { printf "vrrp: %d ms without a gateway\n", ($1 - $4) * $NF / ($1 - 1) }'
ip -n second -brief address show dev eth0 | grep -o 192.0.2.254
