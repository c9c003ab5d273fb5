# SPDX-License-Identifier: Apache-2.0
# One end of the tunnel. Arguments: its name, its address inside, the address of the other end. The example's keys are
# public.
office=WMP4KDi6cmAgPkWQzgPQDhZj1B9qUWcUT1yV1r4hZmA=
home=SKFAWIFQdzzjqs54au739ASc4QD6ZJyU+73blg8dqUI=
if [ "$1" = office ]; then mine=$office other=$home; else mine=$home other=$office; fi
echo $mine > /run/key
ip link add wg0 type wireguard
wg set wg0 listen-port 51820 private-key /run/key peer $(echo $other | wg pubkey) endpoint $3:51820 allowed-ips 10.9.0.0/24
ip link set wg0 mtu 1420 up
ip addr add $2/24 dev wg0
