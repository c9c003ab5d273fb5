# SPDX-License-Identifier: Apache-2.0
"""`hourglass kernel new`: a congestion control or qdisc to begin with, as a file of the user's own."""

from pathlib import Path

from hourglass import files
from hourglass.cli import output, progress
from hourglass.contract.kernels import CHOICES, DEFAULT, KERNELS
from hourglass.engine.kernel import source
from hourglass.errors import InputError, closest
from hourglass.resources import KERNEL
from hourglass.scenario import c_source, module

TEMPLATES = KERNEL / "templates"
NEEDED = {"prague": "7.3"}
"""The kernel of a template that is not for all."""
OF_KERNEL = ("net/ipv4/tcp_*.c", "net/sched/sch_*.c")


def new(target: Path, template: str, kernel: str | None) -> None:
    """Writes `target`, called as the file is, from a template or from the kernel's own source. Raises InputError."""
    if target.suffix != ".c":
        raise InputError("FILE", str(target), "a C file, like my_cc.c")
    if target.exists():
        raise InputError("FILE", str(target), "is there already; give another name")
    path, whose = _source(template, kernel)
    if any(target.stem in names for names in module.NAMES.values()):
        raise InputError("FILE", str(target), f"the kernel has its own {target.stem}; name it like my_{target.name}")
    made = c_source.renamed({target.name: path.read_text()}, target.stem)
    try:
        found = module.check(made, {})
    except ValueError as error:
        raise InputError("FILE", str(target), str(error)) from None
    try:
        files.write(target, made[target.name].encode())
    except OSError as error:
        raise InputError("FILE", str(target), f"cannot be written: {error.strerror or error}") from None
    origin = f"{whose} {template}, called {found.name}" if whose else f"template {template}"
    needed = (kernel or DEFAULT) if whose else NEEDED.get(template)
    chosen = f" --kernel {needed}" if needed else ""
    output.show(
        f"{target}: {c_source.WHAT[found.kind]}, {origin}; use it with: "
        f"hourglass run L100M --set stack.{found.kind}={target}{chosen}",
        whole_lines=True,
    )


def _source(template: str, kernel: str | None) -> tuple[Path, str]:
    """The file of a template, or of what the kernel has under this name; and whose it is, if it is the kernel's."""
    own = {path.stem: path for path in TEMPLATES.glob("*.c")}
    if template in own:
        if kernel is not None:
            raise InputError(
                "--kernel", kernel, f"goes with --from and a kernel's own; {template} is a template for all"
            )
        return own[template], ""
    kernel = kernel or DEFAULT
    if kernel not in KERNELS:
        raise InputError("--kernel", kernel, f"one of {CHOICES}")
    with progress.shown() as shown:
        tree = source.packaged(kernel, lambda text: shown.kernel(0.0, text)).tree
    there: dict[str, Path] = {}
    for path in (path for pattern in OF_KERNEL for path in tree.glob(pattern)):
        text = path.read_text(errors="replace")
        if "EXPORT_SYMBOL" in text:
            continue  # what others use is there once
        try:
            there[c_source.registered({path.name: text}).name] = path
        except ValueError:
            continue  # several in one file, or none
    if template not in there:
        known = [*sorted(own), *sorted(there)]
        raise InputError("--from", template, f"{closest(template, known)}One of {', '.join(known)}")
    return there[template], f"Linux {kernel}'s"
