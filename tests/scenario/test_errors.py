# SPDX-License-Identifier: Apache-2.0
"""Each mistake is reported in one line: the key, the value, the allowed values."""

from pathlib import Path
from typing import Any

import pytest

from hourglass.errors import InputError
from hourglass.scenario import load
from hourglass.scenario.blame import MISTAKES_MAX

GILBERT = 'model="gilbert-elliott"'
ENDS = 'ends=["client:eth0","router:eth0"]'

TABLE = [
    ("stack.tsq=99s", "stack.tsq = '99s'", 'a time like "3ms"'),
    ("stakc.tsq=1", "stakc", 'Did you mean "stack"?'),
    ("stack.cc=cubik", "stack.cc = 'cubik'", 'Did you mean "cubic"?'),
    ("stack.tsk=off", "stack.tsk = 'off'", 'Did you mean "tsq"?'),
    ("stack.client.tsk=off", "stack.client.tsk = 'off'", 'Did you mean "tsq"?'),
    ("stack.cleint.tsq=off", "stack.cleint", 'Did you mean "client"?'),
    ("stack.pacing.ss=0", "stack.pacing.ss = 0", "percent from 1 to 1000"),
    ("stack.tsq=1500ns", "stack.tsq = '1500ns'", "in whole microseconds"),
    ("stack.gso=1ns", "stack.gso = '1ns'", "in whole microseconds"),
    ("stack.gso=0s", "stack.gso = '0s'", '"default" (the kernel\'s autosizing) or a time like "1ms"'),
    ("stack.qdisc=fq_codle", "stack.qdisc = 'fq_codle'", 'Did you mean "fq_codel"?'),
    ("stack.qdisc=qdisc add dev eth0 root fq limit 9", "stack.qdisc = ", 'in the line of tc: "fq limit 9"'),
    ("length=5", "length = 5", "Did you mean test.length?"),
    ("test.delya=1", "test.delya = 1", 'Did you mean "delay"?'),
    ("stack.length=5", "stack.length = 5", "Did you mean test.length?"),
    ("stack.qdisc=htb", "stack.qdisc = 'htb'", "is one of pfifo_fast"),
    ('stack.qdisc="fq\\nqdisc del"', "stack.qdisc = 'fq\\nqdisc del'", "words of letters, digits"),
    ("stack.qdisc=fq\\", "stack.qdisc", "words of letters, digits"),
    ("stack.qdisc=fq #", "stack.qdisc", "words of letters, digits"),
    ("stack.qdisc=stab linklayer atm", "stack.qdisc = 'stab linklayer atm'", "The word after the options of stab"),
    ("stack.qdisc=stab overhead 9 fqq", "stack.qdisc = ", 'Did you mean "fq"?'),
    ("stack.qdisc=", "stack.qdisc = ''", "a qdisc's kind"),
    ("stack.sysctl.kernel.hostname=x", "stack.sysctl", "sysctls of the network only"),
    ("stack.sysctl.net.ipv4.tcp_ecn=1.5", "stack.sysctl", "a whole number or text"),
    ('stack.sysctl.net.ipv4.tcp_ecn="1\\n2"', "stack.sysctl", "one line"),
    ('stack.sysctl."net.ipv4/../x"=1', "stack.sysctl", "sysctls of the network only"),
    ("stack.sysctl.net.ipv4.tcp_congestion_control=bbr", "stack.sysctl", "set stack.cc instead"),
    ("testbed.link.0.dely=1ms", "testbed.link.0.dely = '1ms'", 'Did you mean "delay"?'),
    ("testbed.link.0.delay=1", "testbed.link.0.delay = 1", 'a time like "10ms"'),
    ("testbed.link.0.rate=0", "testbed.link.0.rate = 0", "from 1bit to 1tbit"),
    ("testbed.link.0.rate=[1,2,3]", "testbed.link.0.rate = [1, 2, 3]", "a list of two"),
    ("testbed.link.0.loss=0.1", "testbed.link.0.loss = 0.1", 'a share like "0.1%"'),
    ('testbed.link.0.loss=["1%", {burst=2}, 3]', "testbed.link.0.loss = ", "a list of two, for the two directions"),
    ('testbed.link.0.loss={model="gilbert",rate="1%"}', "testbed.link.0.loss.model", 'Did you mean "gilbert-elliott"?'),
    (f'testbed.link.0.loss={{{GILBERT},rate="1%"}}', "testbed.link.0.loss = ", "needs burst"),
    ('testbed.link.0.loss={rate="1%",burst=2}', "testbed.link.0.loss = ", "no other model has it"),
    (f"testbed.link.0.loss={{{GILBERT},burst=2}}", "testbed.link.0.loss.rate = ", "is missing"),
    (f'testbed.link.0.loss={{{GILBERT},rate="1%",burst=0.9}}', "testbed.link.0.loss.burst = 0.9", "frames from 1 to"),
    (f'testbed.link.0.loss={{{GILBERT},rate="1%",burst=1.0001}}', "testbed.link.0.loss.burst", "whole thousandths"),
    (f'testbed.link.0.loss={{{GILBERT},rate="60%",burst=1}}', "testbed.link.0.loss = ", "50% here"),
    (f'testbed.link.0.loss=[0,{{{GILBERT},rate="76%",burst=3}}]', "testbed.link.0.loss.1 = ", "75% here"),
    ("testbed.link.0.policer=50mbit", "testbed.link.0.policer = '50mbit'", "a table"),
    ('testbed.link.0.policer={burst="64KB"}', "testbed.link.0.policer.rate = ", "is missing"),
    ('testbed.link.0.policer={rate="1mbit"}', "testbed.link.0.policer.burst = ", "is missing"),
    ('testbed.link.0.policer={rate=0,burst="64KB"}', "testbed.link.0.policer.rate = 0", "from 1kbit"),
    ('testbed.link.0.policer={revesre={rate="1mbit"}}', "testbed.link.0.policer.revesre", 'Did you mean "reverse"?'),
    (
        'testbed.link.0.policer={reverse={rate="1mbit",burst="1500B"}}',
        "testbed.link.0.policer.reverse.burst = '1500B'",
        "at least a whole frame, MTU + 14 B: 1514B",
    ),
    ('testbed.link.0.shaper={rate="1mbit"}', "testbed.link.0.shaper = ", "either limit (bytes) or latency (time)"),
    (
        'testbed.link.0.shaper={rate="1mbit",limit="9KB",latency="1ms"}',
        "testbed.link.0.shaper = ",
        "either limit (bytes) or latency (time)",
    ),
    ('testbed.link.0.shaper={rate="1mbit",limit="1KB"}', "testbed.link.0.shaper.forward.limit = '1KB'", "1514B"),
    (
        'testbed.link.0.shaper={rate="2mbit",peak="1mbit",limit="9KB"}',
        "testbed.link.0.shaper = ",
        "peak must be above rate",
    ),
    (
        'testbed.link.0.shaper={rate="2mbit",limit="9KB",ce_threshold=0}',
        "testbed.link.0.shaper.ce_threshold = 0",
        "from 1ns",
    ),
    (
        'testbed.link.0.shaper={rate="2mbit",limit="9KB",grant_cycle="2ms"}',
        "testbed.link.0.shaper = ",
        "grant_cycle and grant_delay need each other",
    ),
    (
        'testbed.link.0.shaper={rate="2mbit",latency="5ms",grant_cycle="2ms",grant_delay="3ms"}',
        "testbed.link.0.shaper = ",
        "latency must be above grant_cycle + grant_delay",
    ),
    ("testbed.link.0.duplex=simplex", "testbed.link.0.duplex = 'simplex'", "full, half"),
    ("testbed.link.0.medium=a b", "testbed.link.0.medium = 'a b'", "1 to 32 letters"),
    ('testbed.link.0.medium=["a"]', "testbed.link.0.medium = ['a']", "a list of two"),
    (f'testbed.link.0={{{ENDS},duplex="half",medium="bus"}}', "testbed.link.0.medium = 'bus'", "in each direction"),
    (
        f'testbed.link.0={{{ENDS},duplex="half",rate=["1mbit","2mbit"]}}',
        "testbed.link.0.rate",
        "the same for both directions",
    ),
    (
        f'testbed.link.0={{{ENDS},duplex="half",outage=[[1,2]]}}',
        "testbed.link.0.duplex = 'half'",
        "cannot be combined with trace",
    ),
    ("testbed.link.0.ends=x", "testbed.link.0.ends = 'x'", "a list of two ends"),
    ('testbed.link.0.ends=["client:eth0","nobody:x"]', "testbed.link.0.ends = 'nobody'", "no such node"),
    ('testbed.link.0.ends=["client:a/b","router:x"]', "testbed.link.0.ends", "1 to 15 letters"),
    ('testbed.link.0.ends=["client:abcdefghijklmnop","router:x"]', "testbed.link.0.ends", "1 to 15 letters"),
    ('testbed.link.0.ends=["client:lo","router:x"]', "testbed.link.0.ends", "is not lo"),
    ('testbed.link.0.ends=["client:x","client:y"]', "testbed.link.0.ends", "not a node to itself"),
    ('testbed.link.1.ends=["client:eth0","server:y"]', "testbed.link.1.ends", "already has a cable"),
    ("testbed.link.0.tx_ring=10", "testbed.link.0.tx_ring = 10", "from 36 to 4096"),
    ("testbed.link.0.tso=1", "testbed.link.0.tso = 1", "true or false"),
    ("testbed.link.0.reorder_delay=2ms", "testbed.link.0 = ", "needs reorder"),
    ("testbed.link.0.outage=[[2,1]]", "testbed.link.0.outage = [[2, 1]]", "its end after its start"),
    ('testbed.link.0.trace=[[1,"1mbit"],[1,0]]', "testbed.link.0.trace.forward.rate", "with increasing times"),
    ("testbed.link.0.trace=nofile", "testbed.link.0.trace = 'nofile'", "no such file"),
    (
        "testbed.link.0.trace.forward.opportunity_ms=[2,1]",
        "testbed.link.0.trace.forward.opportunity_ms",
        "in ascending order",
    ),
    ("testbed.link.0.trace={repeat=1}", "testbed.link.0.trace.forward", "either rate"),
    ("testbed.link.0.trace={rate=[[0,0]],repeat=1}", "testbed.link.0.trace.forward", "no frame would ever pass"),
    ('testbed.link.0.trace={rate=[[0,0],[1,"1mbit"]],repeat=1}', "testbed.link.0.trace.forward", "no frame would ever"),
    ('testbed.link.0.addresses=["10.0.0.1/24"]', "testbed.link.0.addresses", "two addresses"),
    ('testbed.link.0.addresses=["fd00::1/64","fd00::2/64"]', "testbed.link.0.addresses", "addresses of IPv4"),
    ("testbed.link.7.delay=1ms", "--set testbed.link.7.delay = '1ms'", "its items: 0 to 1"),
    ("testbed.link.x.delay=1ms", "--set testbed.link.x.delay = '1ms'", "its items: 0 to 1"),
    ("testbed.link=[]", "testbed.link = []", "1 to 10000 links"),
    ("testbed.link=[1]", "testbed.link.0 = 1", "a table"),
    ("testbed.node=x", "testbed.node = 'x'", "a list of tables"),
    ("testbed.node.0.name=", "testbed.node.0.name = ''", "1 to 32 letters"),
    ("testbed.node.0.name=a b", "testbed.node.0.name = 'a b'", "1 to 32 letters"),
    ("testbed.node.0.name=cc", "testbed.node.0.name = 'cc'", "is a key of [stack]"),
    ("testbed.node.0.name=server", "testbed.node.2.name = 'server'", "already the name of another node"),
    ("testbed.node.0.role=ap", "testbed.node.0.role = 'ap'", "A role is one of host, router"),
    ("testbed.node.0.host=-oProxyCommand=x", "testbed.node.0.host = '-oProxyCommand=x'", "without a password"),
    ("testbed.node.0.host=ssh://me:secret@h", "testbed.node.0.host = 'ssh://me:secret@h'", "without a password"),
    ('testbed.node.0.real={eth0="a b"}', "testbed.node.0.real = {'eth0': 'a b'}", "a name that `ip link`"),
    ('testbed.node.0.real={eth7="enp3s0"}', "testbed.node.0.real.eth7 = 'enp3s0'", "no such device"),
    ('testbed.node.1.real={eth0="a", eth1="a"}', "testbed.node.1.real = ", "each only once"),
    ("testbed.shaper.0.at=client:eth7", "testbed.shaper.0.at = 'client:eth7'", 'Did you mean "client:eth0"?'),
    ("testbed.shaper.1.at=client:eth0", "testbed.shaper.1.at = 'client:eth0'", "already has a shaper"),
    ("testbed.shaper.0.rate=1bit", "testbed.shaper.0.rate = '1bit'", "from 1kbit"),
    ("testbed.shaper.0.burst=1KB", "testbed.shaper.0.burst = '1KB'", "from 1600B"),
    ("testbed.shaper.0.burst=900MB", "testbed.shaper.0", "at most 60 s of data"),
    ("testbed.preset=L10", "testbed.preset = 'L10'", 'Did you mean "L10M"?'),
    ("testbed.ip=5", "testbed.ip = 5", "4 or 6"),
    ("testbed.prset=L10M", "testbed.prset = 'L10M'", 'Did you mean "preset"?'),
    ("test.name=tcp_nupp", "test.name = 'tcp_nupp'", 'Did you mean "tcp_nup"?'),
    ("test.upload_streams=0", "test.upload_streams = 0", "flows from 1 to 1000"),
    ("test.download_streams=2", "test.download_streams = 2", "is not a parameter of the test tcp_nup"),
    ("test.client=nobody", "test.client = 'nobody'", "no such node"),
    ("test.server=client", "test.server = 'client'", "give two different nodes"),
    ("test.length=-1", "test.length = -1", "a number of seconds"),
    ("test.length=inf", "test.length = inf", "a number of seconds"),
    ("test.step=31", "test.step = 31", "at most the test's length"),
    ("test.stream_delays=[30]", "test.stream_delays = 30", "less than the test's length"),
    ("test=3", "test = 3", "a table"),
    ("measure.tcp=1ns", "measure.tcp = '1ns'", "0 or a time"),
    ("name=a/b", "name = 'a/b'", "1 to 64 letters"),
    ("kernel=../x", "kernel = '../x'", "a kernel's name"),
    ("kernel=6.1+x.patch", "kernel = '6.1+x.patch'", "Build a tree or a patched kernel first: hourglass kernel build"),
    ("seed=-1", "seed = -1", "a whole number from 0"),
    ("seed=true", "seed = true", "a whole number from 0"),
    ('description="a\\nb"', "description = 'a\\nb'", "without control characters"),
    ('capture.pcap=["client:eth9"]', "capture.pcap.0 = 'client:eth9'", 'Did you mean "client:eth0"'),
    (
        'capture.pcap=["server:eth0", "clint:eth0"]',
        "capture.pcap.1 = 'clint:eth0'",
        "Devices: client:eth0, router:eth0",
    ),
    ('capture.pcap=["client:eth0", "client:eth0"]', "capture.pcap = ", "each only once; client:eth0 occurs twice"),
    ("capture.pcap=client:eth0", "capture.pcap = 'client:eth0'", "a list of devices"),
    ("capture.snaplen=-1", "capture.snaplen = -1", "a whole number of bytes from 0"),
    ("measure.packets=-1", "measure.packets = -1", "a whole number of packets per second"),
    ("measure.packets=some", "measure.packets = 'some'", 'or "all"'),
    ("measure.packets=true", "measure.packets = true", 'or "all"'),
    (
        "stack.router.eth1.qdisc=cake",
        "stack.router.eth1 = ",
        "Settings of a device belong below stack.router.device.eth1",
    ),
    ("stack.router.device.wan.qdisc=cake", "stack.router.device.wan = ", "Devices of router: eth0, eth1"),
    ("stack.router.device.eth1.qdsc=fq", "stack.router.device.eth1.qdsc = 'fq'", 'Did you mean "qdisc"?'),
    ("stack.router.device.eth1.qdisc=fqq", "stack.router.device.eth1.qdisc = 'fqq'", 'Did you mean "fq"?'),
    ("stack.router.device.eth1={tso=true,checksum=false}", "stack.router.device.eth1.tso = true", "needs checksum"),
    ('test.datagrams=[{rate="1mbit",interval="1ms"}]', "test.datagrams.0", "either rate or interval"),
    ('test.datagrams=[{rate="1bit"}]', "test.datagrams.0.rate = '1bit'", "from 1kbit"),
    ("test.datagrams=[{rate=[[0,0]]}]", "test.datagrams.0.rate = [[0, 0]]", "at least one above 0"),
    ('test.datagrams=[{rate=[[40,"1mbit"]]}]', "test.datagrams.0 = 'datagrams 1'", "sends nothing"),
    ('test.datagrams=[{rate="1mbit",repeat=1,start=31}]', "test.datagrams.0.start = 31", "before its end"),
    ('test.datagrams=[{rate=[[0,"1mbit"],[2,0]],repeat=1}]', "test.datagrams.0 = ", "after the last of them"),
    ('test.datagrams=[{rate="1mbit",repeat=0.001}]', "test.datagrams.0.repeat = 0.001", "at most 10000 steps"),
    ('test.datagrams=[{rate="1mbit",name="icmp"}]', "test.datagrams = 'icmp'", "already the name of another stream"),
    ('test.datagrams=[{rate="1mbit",name="voip"}]', "test.datagrams.0.name = 'voip'", "another name"),
    ('test.datagrams=[{rate="1mbit",sender="server"}]', "test.datagrams.0.receiver = 'server'", "already the sender"),
    ("test.stream_stops=[31]", "test.stream_stops = 31", "at most the test's length"),
    (
        "test={stream_delays=[3],stream_stops=[2]}",
        "test.stream_stops = 2",
        "would end the flow upload::1 before it starts",
    ),
    ('test.stream_rates=["9bit"]', "test.stream_rates = ['9bit']", "from 8kbit"),
    ("stack.cc.x=1", "--set stack.cc.x = 1", "stack.cc is not a table"),
    ("stack.tsq", "--set = 'stack.tsq'", "KEY=VALUE"),
    ("=1", "--set = '=1'", "KEY=VALUE"),
]


@pytest.mark.parametrize(("change", "start", "allowed"), TABLE)
def test_a_mistake_is_one_clear_line(change: str, start: str, allowed: str) -> None:
    with pytest.raises(InputError) as caught:
        load("L100M", [change])
    text = str(caught.value)
    assert text.startswith(start), text
    assert allowed in text
    assert text.isprintable()


def test_several_mistakes_are_reported_in_the_file_s_order(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text("""length = 5
[test]
nmae = "ping"
step = "x"
[testbed]
preset = "L100M"
[stack.client]
cc = "cubik"
[stack]
tsq = 3
""")
    with pytest.raises(InputError) as caught:
        load(file)
    assert [mistake.key for mistake in caught.value.mistakes] == [
        "length",
        "test.nmae",
        "test.step",
        "stack.client.cc",
        "stack.tsq",
    ]
    assert len(str(caught.value).splitlines()) == 5
    mistakes = [
        "testbed.shaper.0.at=client:eth7",
        "stack.clent.cc=bbr",
        'capture.pcap=["x:eth0"]',
        "test.server=nobody",
    ]
    with pytest.raises(InputError) as caught:
        load("L100M", mistakes)
    assert [mistake.key for mistake in caught.value.mistakes] == [
        "testbed.shaper.0.at", "capture.pcap.0", "stack.clent", "test.server",
    ]  # fmt: skip
    with pytest.raises(InputError) as caught:
        load("L100M", [f"x{n}=1" for n in range(20)])
    assert len(caught.value.mistakes) == MISTAKES_MAX


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("cc = cubic", r'line 2, column \d+\); quote strings: cc = "cubic"'),
        ("rate = 100mbit # up", 'quote strings: rate = "100mbit"'),
        ("qdisc = fq_codel target 2ms", 'quote strings: qdisc = "fq_codel target 2ms"'),
        ("ends = [client:eth0, b:c]", r'quote strings: \["a", "b"\]'),
    ],
)
def test_text_without_quotes_is_an_error_that_names_quotes(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "bare.toml"
    file.write_text(f"[stack]\n{line}\n")
    with pytest.raises(InputError, match=rf"is not valid TOML: .*{message}"):
        load(file)


def test_unreachable_nodes_and_access_points_are_refused() -> None:
    nodes = [{"name": name} for name in ("client", "server", "idle")]
    lone = {"node": nodes, "link": [{"ends": ["client:eth0", "server:eth0"]}]}
    with pytest.raises(InputError, match=r"testbed\.node\.2 = 'idle': has no link"):
        load({"testbed": lone})
    cell = [{"ap": "idle:wlan0", "station": [{"at": "client:wlan0"}]}]
    with pytest.raises(InputError, match=r'testbed\.wifi\.0\.ap = .*give idle role = "router"'):
        load({"testbed": {**lone, "wifi": cell}})
    load({"testbed": {**lone, "wifi": cell}, "test": {"server": "idle"}})


def test_a_preset_and_a_graph_exclude_each_other() -> None:
    with pytest.raises(InputError, match=r"testbed\.link = .*cannot be combined with preset"):
        load({"testbed": {"preset": "L100M", "link": []}})


def test_unknown_keys_are_refused_in_python() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "testbed = .nothing.: is missing"),
        ({"testbed": {"preset": "L100M"}, "stack": {"cc": object()}}, "stack.cc = <object"),
        ({"testbed": {"preset": "L100M"}, "name": "\ud800"}, "name = '.ud800'"),
        ({"testbed": {"preset": "L100M"}, "x\ny": 1}, "'x.ny' = 1: unknown key"),
    ]
    for data, message in cases:
        with pytest.raises(InputError, match=message):
            load(data)
