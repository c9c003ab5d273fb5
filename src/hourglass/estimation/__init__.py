# SPDX-License-Identifier: Apache-2.0
"""Estimate a link from measurements of real traffic.

packet_file.py    pcap and pcapng → TCP packets
tcp_samples.py    the packets of a connection → round trips, deliveries, losses
link_estimate.py  samples → rate, base RTT, buffer, loss and cross traffic, each with an interval
link_scenario.py  an estimate → a scenario
"""

from hourglass.estimation.link_estimate import LinkEstimate, estimate_link

__all__ = ["LinkEstimate", "estimate_link"]
