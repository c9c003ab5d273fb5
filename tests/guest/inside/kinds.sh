# SPDX-License-Identifier: Apache-2.0
# Prints "ok NAME" or "not ok NAME: OUTPUT" for each function case_NAME: namespaces a and b, joined by the cable `u`, make a
# kind of device, a route, a protocol or a rule, and carry a ping or a message. Case number $i has the network 172.16.$i.0.
on() { ip netns exec "$@"; }
both() { ip -n a "$@" && ip -n b "$@"; }

# wires NAME: one more cable, without addresses
wires() { ip -n a link add "$1" type veth peer name "$1" netns b; both link set "$1" up; }

# up A [B]: the addresses on device A of namespace a and device B of namespace b, default A
up() {
	ip -n a addr add "172.16.$i.1/24" dev "$1"; ip -n a link set "$1" up
	ip -n b addr add "172.16.$i.2/24" dev "${2:-$1}"; ip -n b link set "${2:-$1}" up
}

reach() { on a ping -q -c 1 -W 2 "$@" "172.16.$i.2"; }

# tunnel OPTIONS: a tunnel between the ends L and R, or L6 and R6, of the cable `u`
tunnel() {
	line="link add t$i $*"
	echo "$line" | sed 's/\bL\b/10.0.0.1/; s/\bR\b/10.0.0.2/; s/\bL6\b/fd00::1/; s/\bR6\b/fd00::2/' | ip -n a -batch -
	echo "$line" | sed 's/\bL\b/10.0.0.2/; s/\bR\b/10.0.0.1/; s/\bL6\b/fd00::2/; s/\bR6\b/fd00::1/' | ip -n b -batch -
	up "t$i"
	reach
}

case_vxlan() { tunnel type vxlan id 5 dstport 4789 local L remote R; }
case_geneve() { tunnel type geneve id 5 remote R; }
case_gre() { tunnel type gre local L remote R; }
case_gre_multicast() { tunnel type gre local L remote 239.1.1.1 key 8 ttl 4 dev u; }
case_gretap() { tunnel type gretap local L remote R; }
case_erspan() { tunnel type erspan seq key 1 local L remote R erspan_ver 1 erspan 1; }
case_ip6gre() { tunnel type ip6gre local L6 remote R6; }
case_ip6gretap() { tunnel type ip6gretap local L6 remote R6; }
case_ipip() { tunnel type ipip local L remote R; }
case_sit() { tunnel type sit mode any local L remote R; }
case_6rd() {
	ip -n a link add rd type sit local 10.0.0.1 ttl 64 6rd-prefix 2001:db8::/32
	ip -n a -d link show rd | grep -q '6rd-prefix 2001:db8::/32'
}
case_ip6tnl() { tunnel type ip6tnl mode any local L6 remote R6; }
case_fou() {
	both fou add port 5555 gue
	tunnel type gre key 9 local L remote R encap gue encap-sport auto encap-dport 5555
}
case_l2tp() {
	for end in "a 10.0.0.1 10.0.0.2" "b 10.0.0.2 10.0.0.1"; do
		set -- $end
		ip -n "$1" l2tp add tunnel tunnel_id 1 peer_tunnel_id 1 encap udp local "$2" remote "$3" udp_sport 5000 udp_dport 5000
		ip -n "$1" l2tp add session name l2 tunnel_id 1 session_id 1 peer_session_id 1
	done
	up l2
	reach
}
case_bareudp() {
	both link add bu type bareudp dstport 6635 ethertype ip
	both link set bu up
	ip -n a addr add "172.16.$i.1/32" dev bu
	ip -n b addr add "172.16.$i.2/32" dev bu
	ip -n a route add "172.16.$i.2" encap ip id 1 dst 10.0.0.2 dev bu
	ip -n b route add "172.16.$i.1" encap ip id 1 dst 10.0.0.1 dev bu
	reach
}
case_mpls() {
	on b sysctl -qw net.mpls.platform_labels=100 net.mpls.conf.u.input=1
	ip -n a addr add "172.16.$i.1/32" dev lo
	ip -n b addr add "172.16.$i.2/32" dev lo
	ip -n a route add "172.16.$i.2" encap mpls 20 via 10.0.0.2
	ip -n b -f mpls route add 20 dev lo
	ip -n b route add "172.16.$i.1" via 10.0.0.1
	reach -I "172.16.$i.1"
}
case_srv6() {
	on b sysctl -qw net.ipv6.conf.all.forwarding=1 net.ipv6.conf.all.seg6_enabled=1 net.ipv6.conf.u.seg6_enabled=1
	ip -n a addr add fc01::1/128 dev lo
	ip -n b addr add fc01::2/128 dev lo
	ip -n a route add fc05::1 via fd00::2
	ip -n a route add fc01::2 encap seg6 mode encap segs fc05::1 dev u
	ip -n b route add fc05::1 encap seg6local action End.DT6 table 255 dev u
	ip -n b route add fc01::1 via fd00::1
	on a ping -q -c 1 -W 2 -I fc01::1 fc01::2
	ip -n b -s -6 route show fc05::1 | grep -q End.DT6
}
case_multipath() {
	wires m2
	ip -n a addr add 10.0.1.1/24 dev m2
	ip -n b addr add 10.0.1.2/24 dev m2
	ip -n b addr add "172.16.$i.2/32" dev lo
	ip -n a route add "172.16.$i.2" nexthop via 10.0.0.2 nexthop via 10.0.1.2
	reach
	test "$(ip -n a route show "172.16.$i.2" | grep -c nexthop)" = 2
}
case_nexthop_group() {
	for way in 1 2; do
		wires g$way
		ip -n a addr add 10.2.$way.1/24 dev g$way
		ip -n b addr add 10.2.$way.2/24 dev g$way
		ip -n a nexthop add id $way via 10.2.$way.2 dev g$way
	done
	ip -n a nexthop add id 10 group 1/2
	ip -n a route add "172.16.$i.0/24" nhid 10
	for host in $(seq 32); do
		ip -n b addr add "172.16.$i.$host/32" dev lo
		on a ping -q -c 1 -W 2 "172.16.$i.$host"
	done
	for way in 1 2; do test "$(on a cat /sys/class/net/g$way/statistics/tx_packets)" -ge 10; done
}
case_realm() {
	ip -n a route add "172.16.$i.0/24" via 10.0.0.2 realm 5
	ip -n a route show "172.16.$i.0/24" | grep -q 'realm 5'
}
case_martians() {
	on a sysctl -qw net.ipv4.conf.all.rp_filter=1 net.ipv4.conf.all.log_martians=1
	ip -n b addr add "172.16.$i.2/32" dev lo
	if on b ping -q -c 1 -W 1 -I "172.16.$i.2" 10.0.0.1; then return 1; fi
	on a sysctl -qw net.ipv4.conf.all.rp_filter=0
	dmesg | grep -q "martian source.*172.16.$i.2"
}
case_multicast_routes() {
	on a python3 - <<-'X'
		import socket
		socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_IGMP).setsockopt(socket.IPPROTO_IP, 200, 1)
		socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6).setsockopt(socket.IPPROTO_IPV6, 200, 1)
	X
}
case_vrf() {
	wires v1
	ip -n a link add red type vrf table 10
	ip -n a link set red up
	ip -n a link set v1 master red
	up v1
	reach -I red
	! reach
}
case_bond() {
	wires b1
	both link add bd type bond mode active-backup miimon 100
	both link set b1 down
	both link set b1 master bd
	up bd
	sleep 1
	reach
}
case_team() {
	wires tm
	ip -n a link add team type team
	ip -n a link set tm down
	ip -n a link set tm master team
}
case_macvlan() { wires mv; ip -n a link add m1 link mv type macvlan mode bridge; up m1 mv; reach; }
case_macvtap() { wires mp; ip -n a link add m2t link mp type macvtap mode bridge; test -d /sys/class/macvtap; }
case_ipvlan() { wires iv; ip -n a link add i1 link iv type ipvlan mode l2; up i1 iv; reach; }
case_ipvtap() { wires it; ip -n a link add i2 link it type ipvtap mode l2; }
case_gvrp() {
	wires gv
	on b tc qdisc add dev gv clsact
	on b tc filter add dev gv ingress flower dst_mac 01:80:c2:00:00:21 action pass
	ip -n a link add link gv name gv.7 type vlan id 7 gvrp on
	ip -n a link set gv.7 up
	sleep 1
	on b tc -s filter show dev gv ingress | grep -q '[1-9][0-9]* pkt'
}
case_igmp_snooping() {
	wires sn
	ip -n a link add bs type bridge mcast_snooping 1
	ip -n a link set bs up
	ip -n a link set sn master bs
	bridge -n a mdb add dev bs port sn grp 239.2.2.2 permanent
	bridge -n a mdb show dev bs | grep -q 239.2.2.2
}
case_dummy() { ip -n a link add d1 type dummy; ip -n a link set d1 up; }
case_ifb() {
	wires ib
	ip -n a link add ifb type ifb
	ip -n a link set ifb up
	on a tc qdisc add dev ib ingress
	on a tc filter add dev ib ingress matchall action mirred egress redirect dev ifb
	up ib
	reach
	ip -n a -s link show ifb | grep -q ' [1-9]'
}
case_macsec() {
	wires ms
	key=11111111111111111111111111111111
	both link add link ms ms0 address 02:00:00:00:00:01 type macsec port 1 encrypt on
	ip -n b link set ms0 address 02:00:00:00:00:02
	both macsec add ms0 tx sa 0 pn 1 on key 01 $key
	mac_a=$(on a cat /sys/class/net/ms0/address)
	mac_b=$(on b cat /sys/class/net/ms0/address)
	ip -n a macsec add ms0 rx port 1 address "$mac_b"
	ip -n a macsec add ms0 rx port 1 address "$mac_b" sa 0 pn 1 on key 01 $key
	ip -n b macsec add ms0 rx port 1 address "$mac_a"
	ip -n b macsec add ms0 rx port 1 address "$mac_a" sa 0 pn 1 on key 01 $key
	up ms0
	reach
}
case_wireguard() { ip -n a link add wg0 type wireguard; ip -n a link set wg0 up; }
case_netdevsim() {
	echo '7 1' > /sys/bus/netdevsim/new_device
	ls /sys/bus/netdevsim/devices/netdevsim7/net
}

# ipsec PROTO STATE: transport mode between the ends of one more cable
ipsec() {
	proto=$1; shift
	wires "x$i"
	up "x$i"
	one=172.16.$i.1 two=172.16.$i.2
	for node in a b; do
		out=out in=in
		test $node = a || { out=in in=out; }
		ip -n $node -batch - <<-X
			xfrm state add src $one dst $two proto $proto spi 0x$i reqid 1 mode transport $*
			xfrm state add src $two dst $one proto $proto spi 0x$i reqid 1 mode transport $*
			xfrm policy add src $one dst $two dir $out tmpl proto $proto reqid 1 mode transport
			xfrm policy add src $two dst $one dir $in tmpl proto $proto reqid 1 mode transport
		X
	done
	reach -s 400
	ip -n a -s xfrm state | grep -q '[1-9][0-9]*(packets)'
}
KEY=0x0123456789abcdef0123456789abcdef
case_esp() { ipsec esp aead "'rfc4106(gcm(aes))'" ${KEY}01234567 128; }
case_esp_cbc() { ipsec esp enc "'cbc(aes)'" $KEY auth "'hmac(sha256)'" $KEY; }
case_ah() { ipsec ah auth "'hmac(sha256)'" $KEY; }
case_ipcomp() { ipsec comp comp deflate; }
case_xfrm_interface() {
	wires xi
	for end in "a 10.1.0.1 10.1.0.2" "b 10.1.0.2 10.1.0.1"; do
		set -- $end
		ip -n "$1" -batch - <<-X
			addr add $2/24 dev xi
			xfrm state add src $2 dst $3 proto esp spi 0x70 if_id 7 mode tunnel aead 'rfc4106(gcm(aes))' ${KEY}01234567 128
			xfrm state add src $3 dst $2 proto esp spi 0x70 if_id 7 mode tunnel aead 'rfc4106(gcm(aes))' ${KEY}01234567 128
			xfrm policy add dir out if_id 7 tmpl src $2 dst $3 proto esp mode tunnel
			xfrm policy add dir in if_id 7 tmpl src $3 dst $2 proto esp mode tunnel
			link add xf type xfrm dev xi if_id 7
		X
	done
	up xf
	reach
}

case_nftables() {
	on a nft -f - <<-'X'
		table inet everything {
			set networks { type ipv4_addr; flags interval; elements = { 10.8.0.0/16 } }
			map ports { type inet_service : verdict; elements = { 22 : accept } }
			set seen { type ipv4_addr; size 128; flags dynamic, timeout; timeout 1m; }
			quota volume { over 10 mbytes }
			limit rate1 { rate 10/second }
			flowtable fast { hook ingress priority 0; devices = { u }; }
			chain in {
				type filter hook input priority 0
				ip saddr @networks counter drop
				tcp dport vmap @ports
				tcp dport 23 ct count over 10 reject
				tcp dport 24 quota name "volume" drop
				tcp dport 25 limit name "rate1" accept
				tcp dport 26 add @seen { ip saddr timeout 10s }
				tcp dport 27 queue num 1 bypass
				socket transparent 1 mark set 1
				numgen inc mod 2 0 counter
				jhash ip saddr mod 2 0 counter
				fib saddr type local counter
				ct label 1 counter
			}
			chain zone { type filter hook prerouting priority raw; ct zone set 5; }
			chain pre { type filter hook prerouting priority mangle; tcp dport 80 tproxy ip to 127.0.0.1:8080 accept; }
			chain forward { type filter hook forward priority 0; meta l4proto tcp flow add @fast; }
			chain ingress { type filter hook ingress device "u" priority 1; ip daddr 10.9.9.9 drop; }
		}
		table netdev dev { chain c { type filter hook ingress device u priority 0; ip daddr 10.9.9.9 fwd to u; ip daddr 10.9.9.8 dup to u; }; }
		table bridge br { chain c { type filter hook input priority 0; meta ibrname "x" reject; }; }
		table arp ar { chain c { type filter hook input priority 0; arp operation request counter; }; }
		table ip d { chain c { type filter hook prerouting priority 0; ip daddr 10.8.0.9 dup to 10.0.0.2; }; }
		table ip na { chain c { type nat hook postrouting priority srcnat; oifname "y" masquerade; }; }
	X
	on a ping -q -c 1 -W 2 10.0.0.2
}
case_nft_everything() {
	on a nft -f - <<-'X'
		table inet rest {
			ct helper ftp { type "ftp" protocol tcp; }
			ct timeout short { protocol tcp; l3proto ip; policy = { established : 100 }; }
			synproxy sp {
				mss 1460
				wscale 7
				timestamp sack-perm
			}
			chain in {
				type filter hook input priority 0
				tcp dport 21 ct helper set "ftp"
				tcp dport 22 ct timeout set "short"
				tcp dport 28 synproxy name "sp"
				osf name "Linux" counter
				meta ipsec exists counter
			}
		}
	X
}
case_udplite() {
	on a nft 'table ip lite { chain c { type nat hook output priority 0; udplite dport 5100 dnat to 10.0.0.2:5101; }; }'
	on b python3 -c 'import socket; s = socket.socket(2, 2, 136); s.bind(("", 5101)); s.settimeout(2); print(s.recv(9))' > lite &
	sleep 0.1
	on a python3 -c 'import socket; socket.socket(2, 2, 136).sendto(b"message", ("10.0.0.2", 5100))'
	wait $!
	grep -q message lite
}
case_nft_log() { on a nft 'table inet l { chain c { type filter hook input priority 0; log group 1; log prefix "x"; }; }'; }
case_nft_egress() { on a nft 'table netdev e { chain c { type filter hook egress device u priority 0; ip daddr 10.9.9.9 drop; }; }'; }
case_xtables() {
	on a iptables-nft -A INPUT -p tcp -m hashlimit --hashlimit-upto 9/s --hashlimit-name h -j ACCEPT
	on a iptables-nft -A INPUT -p tcp -m connlimit --connlimit-above 9 -j REJECT
	on a iptables-nft -A INPUT -m string --string x --algo bm -m length --length 1 -m u32 --u32 0=1 -j LOG
	on a iptables-nft -A INPUT -m mac --mac-source 02:00:00:00:00:09 -m iprange --src-range 10.8.0.1-10.8.0.2 -j DROP
	on a iptables-nft -t mangle -A OUTPUT -m owner --uid-owner 9 -m recent --set -j DSCP --set-dscp 1
	on a iptables-nft -t mangle -A OUTPUT -p tcp -m ecn --ecn-ip-ect 0 -j CONNMARK --set-mark 1
	on a iptables-nft -t raw -A PREROUTING -p udp -j CT --notrack
}
case_xtables_policy() { on a iptables-nft -A OUTPUT -m policy --dir out --pol none -j ACCEPT; }
case_ipset() {
	on a ipset create nets hash:net
	on a ipset add nets 10.8.0.0/16
	on a iptables-nft -A INPUT -m set --match-set nets src -j DROP
	on a ipset test nets 10.8.1.1
}

case_tc_actions() {
	wires tc
	on a tc qdisc add dev tc clsact
	on a tc -batch - <<-X
		filter add dev tc egress pref 1 matchall action vlan push id 5
		filter add dev tc egress pref 2 matchall action pedit ex munge ip ttl set 9 pipe action csum ip
		filter add dev tc egress pref 3 matchall action nat egress 10.8.0.1 10.8.0.2
		filter add dev tc egress pref 4 matchall action tunnel_key set src_ip 10.0.0.1 dst_ip 10.0.0.2 id 5
		filter add dev tc egress pref 6 matchall action mpls push protocol mpls_uc label 20
		filter add dev tc egress pref 7 matchall action skbmod set dmac 02:00:00:00:00:09
		filter add dev tc egress pref 8 matchall action connmark
		filter add dev tc egress pref 9 matchall action ctinfo dscp 0xfc000000
		filter add dev tc egress pref 10 matchall action simple sdata x
		filter add dev tc egress pref 11 matchall action sample rate 10 group 5
		filter add dev tc egress pref 12 basic match 'cmp(u8 at 0 layer link gt 1) and meta(priority eq 1)' action ok
	X
}
case_u32_mark() {
	wires um
	up um
	on a tc qdisc add dev um clsact
	on a tc filter add dev um egress protocol ip u32 match mark 1 0xff action drop
	reach
	! reach -m 1
}
case_tc_ct() { on a tc actions add action ct commit zone 5; }
case_tc_gate() { on a tc actions add action gate clockid CLOCK_TAI sched-entry open 1000000 -1 -1; }

# talk FAMILY TYPE PROTOCOL ADDRESS: a message over a stream or a sequence of packets
talk() {
	on a python3 - "$@" <<-'X'
		import socket, sys
		family, kind, protocol = map(int, sys.argv[1:4])
		address = eval(sys.argv[4])
		server = socket.socket(family, kind, protocol)
		server.bind(address)
		server.listen()
		client = socket.socket(family, kind, protocol)
		client.connect(address)
		end, _ = server.accept()
		client.send(b"message")
		assert end.recv(100) == b"message"
	X
}
case_sctp() { talk 2 1 132 '("10.0.0.1", 5001)'; }
case_sctp_packets() { talk 10 5 132 '("fd00::1", 5001)'; }
case_mptcp() { talk 2 1 262 '("10.0.0.1", 5002)'; }
case_md5() {
	on a python3 - <<-'X'
		import socket, struct
		server, client = socket.socket(), socket.socket()
		for end in (server, client):
		    address = struct.pack("=H2x4s120x", socket.AF_INET, socket.inet_aton("10.0.0.1"))
		    end.setsockopt(socket.IPPROTO_TCP, 14, address + struct.pack("=BBHi80s", 0, 0, 6, 0, b"secret"))
		server.bind(("10.0.0.1", 5005))
		server.listen()
		client.connect(("10.0.0.1", 5005))
		client.send(b"message")
		assert server.accept()[0].recv(100) == b"message"
	X
}
case_tipc() { talk 30 5 0 '(socket.TIPC_ADDR_NAME, 5000, 1, 1)' || talk 30 5 0 '(1, 5000, 1, 1, 2)'; }
case_dccp() {
	on a python3 - <<-'X'
		import socket
		pair = [socket.socket(2, 6, 33) for _ in range(2)]
		for end in pair:
		    end.setsockopt(269, 2, (1).to_bytes(4, "big"))
		pair[0].bind(("10.0.0.1", 5003))
		pair[0].listen()
		pair[1].connect(("10.0.0.1", 5003))
		pair[1].send(b"message")
		assert pair[0].accept()[0].recv(100) == b"message"
	X
}
case_tls() {
	on a python3 - <<-'X'
		import socket, struct
		server = socket.socket()
		server.bind(("10.0.0.1", 5004))
		server.listen()
		client = socket.create_connection(("10.0.0.1", 5004))
		end, _ = server.accept()
		for socket_, direction in ((client, 1), (end, 2)):
		    socket_.setsockopt(6, 31, b"tls")
		    socket_.setsockopt(282, direction, struct.pack("=HH8s16s4s8s", 0x303, 51, b"i" * 8, b"k" * 16, b"s" * 4, b"r" * 8))
		client.send(b"message")
		assert end.recv(100) == b"message"
	X
}
# netlink FAMILY: the generic netlink family exists
netlink() { genl ctrl get name "$1"; }
case_openvswitch() { netlink ovs_datapath; }
case_psp() { netlink psp; }

set -e
for n in a b; do
	ip netns add $n
	on $n sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0
	ip -n $n link set lo up
done
wires u
ip -n a addr add 10.0.0.1/24 dev u
ip -n b addr add 10.0.0.2/24 dev u
ip -n a addr add fd00::1/64 dev u
ip -n b addr add fd00::2/64 dev u
set +e
i=0
for name in "$@"; do
	i=$((i + 1))
	output=$(set -e; "case_$name" 2>&1)
	if [ $? = 0 ]; then echo "ok $name"; else echo "not ok $name: $(echo "$output" | tail -n 3 | tr '\n' ' ')"; fi
done
