# SPDX-License-Identifier: Apache-2.0
"""The attempts of `test_escapes.py` outside of a node, on a kernel without `containment`. Each succeeds that Linux
itself does not refuse. So the refusal of each in a node is due to the node or to the hook."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hourglass.builders.kernel import registry
from hourglass.contract.kernels import DEFAULT, KERNELS
from hourglass.contract.plan.apps import Root
from hourglass.engine import program_root, virtual
from hourglass.host import process, sandbox

from .test_escapes import ATTEMPTS, ESCAPES, INSIDE, OPEN, TOOLS

pytestmark = [pytest.mark.guest, pytest.mark.kernels]

ATTEMPT = "python3 /attempts/attempts.py"
ABSENT = {
    "cat /dev/mem", "cat /proc/kcore", "echo /tmp/h > /proc/sys/kernel/core_pattern", "echo c > /proc/sysrq-trigger",
    "echo /tmp/h > /proc/sys/kernel/hotplug", "echo /tmp/h > /proc/sys/kernel/modprobe",
    "echo 1 > /proc/sys/fs/binfmt_misc/register", "cpuset_of_version_1", "memory_of_the_machine", "modules_by_alias",
    "the_controlling_terminal", "hidden_mounts_of_the_namespace",
}  # fmt: skip
"""The attempts whose object no kernel or guest has."""

REFUSED = {
    # in another namespace than the first
    "mkdir /tmp/d; unshare -Urmpf mount -t devtmpfs none /tmp/d", "hostfs_in_a_user_namespace",
    "mkdir /tmp/h; unshare -Urmpf mount -t hostfs none /tmp/h", "release_agent", "rootfs_in_a_user_namespace",
    "mkdir /tmp/v; unshare -C mount -t cgroup -o none,name=y none /tmp/v", "device_nodes_in_a_user_namespace",
    "mkdir /tmp/v; unshare -UrC mount -t cgroup -o none,name=z none /tmp/v", "capabilities_in_a_user_namespace",
    "groups_of_a_new_namespace", "a_clone_of_the_first_process_root", "an_overlay_of_the_first_process_root",
    "devices_of_other_nodes_by_handle", "owners_of_namespaces",
    # only for users, who have fewer rights outside of a node, too
    "a_map_of_the_host_root", "capabilities_of_a_file_by_an_overlay", "programs_in_bpf_of_users",
    # by the order of mounts, or because the file system has no such handles
    "a_mount_beneath_the_root", "rootfs_by_moving_the_root", "a_handle_of_the_own_root",
    # errors that these kernels no longer have
    "a_root_that_nodes_share", "memory_of_a_read_only_file", "legacy_option_without_bound",
    # by User Mode Linux
    "an_instruction_pointer_of_the_kernel", "another_call_at_the_entry", "calls_by_interrupt", "calls_by_sysenter",
    "calls_in_single_steps", "calls_in_the_mode_of_32_bits", "calls_of_the_x32_abi", "registers_beyond_their_end",
    "segments_of_the_kernel", "the_pages_of_user_mode_linux",
    # the first process of a namespace takes no signals from within
    "the_first_process_is_stopped",
}  # fmt: skip
"""The attempts that Linux refuses to everybody."""

ENDING = {"an_orderly_end_of_the_machine", *(command for command in ESCAPES if "reboot" in command)}
"""The attempts that end the guest."""
LATE = {
    "calls_of_the_machine_s_root",
    *(command for command in ESCAPES if "date --set" in command or "attach" in command),
}
"""The attempts that set the guest's clock or stop its first process."""
LIMIT_S = 120


def test_outside_of_a_node_the_attempts_succeed(tmp_path: Path) -> None:
    """On one of the kernels: later ones have more calls, and one file less."""
    refused = (ESCAPES.keys() | ATTEMPTS) - OPEN - ENDING
    for kernel in (DEFAULT, [*KERNELS][-1]):
        answers = outside(kernel, tmp_path / kernel, refused)
        refused = {name for name in refused if re.search(ESCAPES.get(name, "^refused: "), answers[name])}
    assert refused == ABSENT | REFUSED
    for number, name in enumerate(ENDING):
        assert outside(DEFAULT, tmp_path / f"end-{number}", {":", name}) == {":": ""}, (
            "the guest ends before it answers"
        )


def outside(kernel: str, folder: Path, names: set[str]) -> dict[str, str]:
    """Return the answer of each attempt outside of a node. `folder`: the new root of the guest."""
    ready = program_root.ready(Root(kind="debian", place="12", packages=TOOLS))
    shutil.copytree(ready.folder, folder, symlinks=True)
    for name in ("out", "room", "groups", "init", "run", "proc", "sys", "dev", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    shutil.copytree(INSIDE, folder / "attempts")
    commands = []
    for group in (names - LATE, names & LATE):
        attempts = " ".join(sorted(group & ATTEMPTS))
        commands += [*sorted(group - ATTEMPTS), *([f"{ATTEMPT} {attempts}"] if attempts else [])]
    (folder / "commands.json").write_text(json.dumps(commands))
    (folder / "answers.json").write_text("{}")
    boot(kernel, folder)
    answers: dict[str, str] = json.loads((folder / "answers.json").read_text())
    outcomes = [json.loads(line) for name in answers if name.startswith(ATTEMPT) for line in answers[name].splitlines()]
    return answers | {line["name"]: line["outcome"] for line in outcomes}


def boot(kernel: str, folder: Path) -> None:
    """Start a guest with a folder as its root, and wait for its end."""
    (folder / virtual.PRIVATE / "root-0").mkdir(parents=True)
    command = [
        str(registry.ensure(kernel, without=("containment", "program-filter")).linux), "time-travel=inf-cpu", "mem=1G",
        "root=none", "rootfstype=hostfs", f"hostfs={folder}", "rw", f"uml_dir={virtual.PRIVATE}/", "con=null",
        "con0=null,fd:1", "ssl=null", "quiet", "panic=-1", "random.trust_cpu=on", "hourglass.seed=1",
        "hourglass.roots=1", "init=/usr/bin/python3", "--", "/attempts/outside.py",
    ]  # fmt: skip
    devices = [(device, sandbox.DEVICE) for device in virtual.DEVICES]
    rules = [(Path("/"), sandbox.RUN), (folder, sandbox.WRITE), *devices]
    environment = {"TMPDIR": virtual.PRIVATE, "GLIBC_TUNABLES": virtual.NO_RSEQ}
    with (
        sandbox.confinement(rules, filtered=True) as confine,
        process.group(command, folder, environment, powerless=True, confine=confine) as guest,
    ):
        try:
            guest.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            pytest.fail("the guest does not end")
