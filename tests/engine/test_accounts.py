# SPDX-License-Identifier: Apache-2.0
"""Users of packages: what their scripts ask for, in the words of Debian's own."""

from pathlib import Path

import pytest

from hourglass.engine.approot.accounts import Account, asked, declared, write

TCPDUMP = """\
if [ "$1" = configure ]; then
  if ! getent group tcpdump >/dev/null; then
    addgroup --system --quiet tcpdump
  fi
  if ! getent passwd tcpdump >/dev/null; then
    adduser --system --quiet --ingroup tcpdump \\
            --no-create-home --home /nonexistent tcpdump
  fi
fi
"""
REDIS = """\
USER="redis"
GROUP="$USER"
adduser \\
    --system \\
    --home /var/lib/redis \\
    --quiet \\
    --group \\
    ${USER} || true
"""
DNSMASQ = (
    "useradd --system --gid nogroup --comment 'it serves' --home-dir /var/lib/misc --shell=/bin/sh dnsmasq; true\n"
)
MASTER = {"passwd": "root:x:0:0:root:/root:/bin/bash\n", "group": "root:x:0:\nnogroup:x:65534:\n"}


@pytest.mark.parametrize(
    ("script", "found"),
    [
        (TCPDUMP, [Account("tcpdump", user=False), Account("tcpdump", group="tcpdump")]),
        (REDIS, [Account("redis", home="/var/lib/redis")]),
        (DNSMASQ, [Account("dnsmasq", group="nogroup", home="/var/lib/misc", shell="/bin/sh")]),
        ("adduser --system plain", [Account("plain", group="nogroup")]),
        ("adduser friend\n# adduser --system no\nadduser --system $(name)\nadduser --system 'open", []),
        ("adduser --system one group", []),
    ],
)
def test_what_a_script_adds(script: str, found: list[Account]) -> None:
    assert list(asked(script)) == found


def test_what_sysusers_declares() -> None:
    snippet = "# of a daemon\nu messagebus - 'System bus'\nu! sshd 71 'It' /run/sshd /bin/false\ng render -\nm a b\n"
    assert list(declared(snippet)) == [
        Account("messagebus"),
        Account("sshd", home="/run/sshd", shell="/bin/false"),
        Account("render", user=False),
    ]


def test_numbers_follow_the_names_and_debian_s_own_stay(tmp_path: Path) -> None:
    for folder in ("etc", "usr/share/base-passwd", "usr/lib/sysusers.d"):
        (tmp_path / folder).mkdir(parents=True)
    for name, text in MASTER.items():
        (tmp_path / f"usr/share/base-passwd/{name}.master").write_text(text)
    (tmp_path / "usr/lib/sysusers.d/a.conf").write_text("u root 0\nu bus -\n")
    write(tmp_path, [TCPDUMP, DNSMASQ, TCPDUMP])
    assert (tmp_path / "etc/group").read_text() == MASTER["group"] + "bus:x:100:\ntcpdump:x:101:\n"
    assert (tmp_path / "etc/passwd").read_text() == MASTER["passwd"] + (
        "bus:x:100:100::/nonexistent:/usr/sbin/nologin\n"
        "dnsmasq:x:101:65534::/var/lib/misc:/bin/sh\n"
        "tcpdump:x:102:101::/nonexistent:/usr/sbin/nologin\n"
    )
