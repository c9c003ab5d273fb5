# SPDX-License-Identifier: Apache-2.0
"""Users of packages: the accounts that their scripts add, with the lines of Debian's scripts."""

from pathlib import Path

import pytest

from hourglass.builders.approot.accounts import Account, added_accounts, declared_accounts, memberships, write

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
POSTGRESQL = """\
[ "$DPKG_MAINTSCRIPT_PACKAGE" ] && quiet="--quiet"
if ! getent passwd postgres > /dev/null; then
    adduser --system $quiet --home /var/lib/postgresql --no-create-home \\
        --shell /bin/bash --group --gecos "PostgreSQL administrator" postgres
fi
"""
FRR = """\
addgroup --system frrvty
addgroup --system frr
adduser --system --ingroup frr --home /var/run/frr/ --gecos "Frr routing suite" frr
usermod -a -G frrvty frr
usermod -g frr frr
adduser $quiet frr ssl-cert
"""
MASTER = {"passwd": "root:x:0:0:root:/root:/bin/bash\n", "group": "root:x:0:\nnogroup:x:65534:\n"}


@pytest.mark.parametrize(
    ("script", "accounts"),
    [
        (TCPDUMP, [Account("tcpdump", user=False), Account("tcpdump", group="tcpdump")]),
        (REDIS, [Account("redis", home="/var/lib/redis")]),
        (DNSMASQ, [Account("dnsmasq", group="nogroup", home="/var/lib/misc", shell="/bin/sh")]),
        (POSTGRESQL, [Account("postgres", home="/var/lib/postgresql", shell="/bin/bash")]),
        ("adduser --system plain", [Account("plain", group="nogroup")]),
        ("adduser friend\n# adduser --system no\nadduser --system $(name)\nadduser --system 'open", []),
        ("adduser --system one group", []),
    ],
)
def test_accounts_of_a_script(script: str, accounts: list[Account]) -> None:
    assert list(added_accounts(script)) == accounts


def test_groups_that_a_script_joins() -> None:
    assert list(memberships(FRR)) == [("frr", "frrvty"), ("frr", "ssl-cert")]
    assert not list(memberships("usermod -aG adm $user"))


def test_accounts_of_sysusers() -> None:
    snippet = "# of a daemon\nu messagebus - 'System bus'\nu! sshd 71 'It' /run/sshd /bin/false\ng render -\nm a b\n"
    assert list(declared_accounts(snippet)) == [
        Account("messagebus"),
        Account("sshd", home="/run/sshd", shell="/bin/false"),
        Account("render", user=False),
    ]


def test_numbers_follow_the_names_and_debian_s_accounts_remain(tmp_path: Path) -> None:
    for folder in ("etc", "usr/share/base-passwd", "usr/lib/sysusers.d"):
        (tmp_path / folder).mkdir(parents=True)
    for name, text in MASTER.items():
        (tmp_path / f"usr/share/base-passwd/{name}.master").write_text(text)
    (tmp_path / "usr/lib/sysusers.d/a.conf").write_text("u root 0\nu bus -\n")
    write(tmp_path, [TCPDUMP, DNSMASQ, TCPDUMP, FRR.replace("frr ssl", "dnsmasq nogroup\nadduser unknown ssl")])
    groups = "root:x:0:\nnogroup:x:65534:dnsmasq\nbus:x:100:\nfrr:x:101:\nfrrvty:x:102:frr\ntcpdump:x:103:\n"
    assert (tmp_path / "etc/group").read_text() == groups
    assert (tmp_path / "etc/passwd").read_text() == MASTER["passwd"] + (
        "bus:x:100:100::/nonexistent:/usr/sbin/nologin\n"
        "dnsmasq:x:101:65534::/var/lib/misc:/bin/sh\n"
        "frr:x:102:101::/var/run/frr/:/usr/sbin/nologin\n"
        "tcpdump:x:103:103::/nonexistent:/usr/sbin/nologin\n"
    )
