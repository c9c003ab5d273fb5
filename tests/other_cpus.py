# SPDX-License-Identifier: Apache-2.0
"""The same bytes on other CPUs: `make other-cpus`, or `python -m tests.other_cpus [MODEL …]`.

Short runs are made as usual. Then their guests alone (kernel, root, plan and command line) run again in virtual
machines, one for each CPU model. QEMU emulates them without KVM, so that this machine executes none of the guest's
instructions itself. The digests of the records are compared. Only the guest comes from this machine: the virtual
machine's kernel is downloaded from Debian, its programs are busybox. A model takes about 90 s on an idle machine. If
digests differ, the folder with the native runs and the machines' records remains.
"""

import argparse
import gzip
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hourglass import runner, scenario
from hourglass.builders import cpio, root
from hourglass.builders.kernel import registry
from hourglass.contract.kernels import KERNELS, tools
from hourglass.engine import virtual

MODELS = (
    "qemu64", "Nehalem", "Haswell-noTSX", "EPYC", "max", "max,-xsave,-avx,-avx2", "max,-fsgsbase", "max,-pku,-la57",
)  # fmt: skip
"""CPUs of two makers, from the lowest level of the psABI (x86-64-v1) to all features that QEMU can emulate. The last
ones lack features that the guest's kernel or its C library would use."""

CASES = ("L100M", "R100M", "wifi-ath9k")
SHORT = ("test.length=1", "test.delay=0.2")
PROGRAMS = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static"}
IMAGE = "linux-image-cloud-amd64"
LIMIT_S = 1800

INIT = """\
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mkdir /dev/shm; mount -t tmpfs -o size=90% shm /dev/shm
stty -F /dev/ttyS2 raw
for run in /w/runs/*; do
  cd "$run"
  timeout 600 sh ./command </dev/null >console.log 2>&1
  echo "${run##*/} $(sha256sum <records.arrows | cut -c1-64)" >/dev/ttyS1
done
cd /w; tar c runs/*/records.arrows runs/*/console.log >/dev/ttyS2
poweroff -f
"""
"""The machine's init. It writes digests to its second serial port, records and consoles as a tar to its third."""


def guests(folder: Path, kernels: list[str], cases: list[str]) -> tuple[dict[str, str], dict[str, cpio.CpioMember]]:
    """Return the digest of each run by its name, and the files that its guest needs."""
    digests, files = {}, {}
    for kernel in kernels:
        built = registry.ensure(kernel)
        files[f"w/linux-{kernel}"] = cpio.file(built.linux.read_bytes(), 0o755)
        for case in cases:
            name = f"{case}-{kernel}"
            run = runner.run(scenario.load(case, SHORT, kernel=kernel), folder / "native" / name)
            digests[name] = json.loads((run.path / "run.json").read_text())["digest"]
            plan = (run.path / "plan.json").read_bytes()
            archive = root.image(bool(json.loads(plan)["radios"]), tools(built.release))
            line = [f"/w/linux-{kernel}", *virtual.command(built, json.loads(plan)["seed"])[1:]]
            start = f"mkdir {virtual.PRIVATE}; ln -s /w/{archive.name} {virtual.PRIVATE}/root.cpio\n"
            start += f"exec env -i TMPDIR=/dev/shm GLIBC_TUNABLES={virtual.NO_RSEQ} {shlex.join(line)}\n"
            files[f"w/{archive.name}"] = cpio.file(archive.read_bytes())
            files[f"w/runs/{name}/plan.json"] = cpio.file(plan)
            files[f"w/runs/{name}/command"] = cpio.file(start.encode())
            print(f"native {name} {digests[name][:12]}", flush=True)
    return digests, files


def machine(folder: Path, files: dict[str, cpio.CpioMember]) -> tuple[Path, Path]:
    """Return kernel and root of the virtual machine."""
    depends = subprocess.run(["apt-cache", "depends", IMAGE], text=True, capture_output=True, check=True).stdout
    package = re.findall(r"Depends: (linux-image-\S+)", depends)[0]
    subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, check=True, stderr=subprocess.DEVNULL)
    subprocess.run(["dpkg-deb", "-x", *folder.glob(f"{package}_*.deb"), folder / "image"], check=True)
    busybox = cpio.file(Path(shutil.which("busybox") or "").read_bytes(), 0o755)
    base = {name: cpio.folder() for name in ("proc", "sys", "dev", "tmp")}
    base |= {"bin/busybox": busybox, "init": cpio.file(INIT.encode(), 0o755)}
    archive = folder / "root.cpio.gz"
    archive.write_bytes(gzip.compress(cpio.archive(files | base), 1))
    return next(folder.glob("image/boot/vmlinuz-*")), archive


def emulated(folder: Path, model: str, kernel: Path, archive: Path) -> dict[str, str]:
    """Return the digests of the runs on a CPU model, whose files are in `folder`."""
    ports = [folder / f"{model}.{suffix}" for suffix in ("console", "digests", "records.tar")]
    serial = [argument for port in ports for argument in ("-serial", f"file:{port}")]
    command = [
        "qemu-system-x86_64",
        "-accel",
        "tcg",
        "-cpu",
        model,
        "-m",
        "3G",
        "-smp",
        "1",
        "-nodefaults",
        "-no-reboot",
    ]
    command += ["-display", "none", *serial, "-kernel", str(kernel), "-initrd", str(archive)]
    command += ["-append", "console=ttyS0 quiet panic=-1 8250.nr_uarts=4"]
    subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT_S, check=True)
    return dict(re.findall(r"(\S+) ([0-9a-f]{64})", ports[1].read_text()))


def main() -> int:
    """Return the exit status. 0: all equal; 1: some differ; 3: this machine lacks a program."""
    parser = argparse.ArgumentParser(description="Compares runs here with runs under emulated CPUs.")
    parser.add_argument("model", nargs="*", default=MODELS, help="QEMU's names; qemu-system-x86_64 -cpu help")
    parser.add_argument("--kernel", action="append", choices=list(KERNELS), help="this kernel alone (repeat)")
    parser.add_argument("--case", action="append", help=f"this scenario (repeat); else {', '.join(CASES)}")
    arguments = parser.parse_args()
    lacking = sorted(package for program, package in PROGRAMS.items() if shutil.which(program) is None)
    if lacking:
        print(f"to fix: apt-get install -y --no-install-recommends {' '.join(lacking)}", file=sys.stderr)
        return 3
    folder = Path(tempfile.mkdtemp(prefix="hourglass-cpus-"))
    digests, files = guests(folder, arguments.kernel or list(KERNELS), arguments.case or list(CASES))
    kernel, archive = machine(folder, files)
    differing = 0
    for model in arguments.model:
        emulated_digests = emulated(folder, model, kernel, archive)
        for name, digest in digests.items():
            is_same = emulated_digests.get(name) == digest
            differing += not is_same
            print(
                f"{model} {name} {'equal' if is_same else 'DIFFERS ' + emulated_digests.get(name, 'no records')[:12]}",
                flush=True,
            )
    if differing:
        print(f"{differing} differ: {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
