# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass kernel new`: write a congestion control or qdisc to start from."""

from pathlib import Path
from typing import Annotated

import typer

from hourglass import files
from hourglass.builders.kernel import source_tree
from hourglass.cli import output, progress
from hourglass.cli.help import examples
from hourglass.contract.kernel_module import BPF_SUFFIX
from hourglass.contract.kernels import CHOICES, DEFAULT, KERNELS
from hourglass.errors import InputError, closest
from hourglass.resources import KERNEL
from hourglass.scenario import c_source, module

TEMPLATES = KERNEL / "templates"
BPF_TEMPLATE = "aimd.bpf"
NEEDED = {"prague": "7.3", BPF_TEMPLATE: "7.3+bpf"}
"""Templates that need a certain kernel."""
OF_KERNEL = ("net/ipv4/tcp_*.c", "net/sched/sch_*.c")


@examples("""\
hourglass kernel new my_cc.c
hourglass kernel new my_cc.bpf.c
hourglass kernel new my_cubic.c --from cubic --kernel 6.12
hourglass kernel new my_qdisc.c --from sojourn""")
def kernel_new(
    target: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The new file, .c or .bpf.c; its stem is the name of the algorithm."),
    ],
    template: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="NAME",
            help="Template: aimd, bbr3, prague, sojourn (a qdisc), or an algorithm of the kernel: cubic, fq_codel.",
        ),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(metavar="VERSION", help=f"Kernel of the template; one of {CHOICES}; default: {DEFAULT}."),
    ] = None,
) -> None:
    """Write a template of a congestion control or a qdisc, for `stack.cc` or `stack.qdisc`."""
    new(target, template or (BPF_TEMPLATE if target.name.endswith(BPF_SUFFIX) else "aimd"), kernel)


def new(target: Path, template: str, kernel: str | None) -> None:
    """Write `target`, from a template or from the kernel's source, and register it under the file's name. Raises
    InputError."""
    if target.suffix != ".c":
        raise InputError("FILE", str(target), "must be a C file, like my_cc.c")
    if target.exists():
        raise InputError("FILE", str(target), "exists; choose another name")
    path, owner = _source(template, kernel)
    name = target.name.removesuffix(".c").removesuffix(".bpf")
    if path.name.endswith(BPF_SUFFIX) != target.name.endswith(BPF_SUFFIX):
        raise InputError("--from", template, f"is {path.name}; FILE and template must both end in {BPF_SUFFIX} or not")
    if any(name in names for names in module.NAMES.values()):
        problem = f"is the name of the kernel's {name}; choose a name like my_{target.name}"
        raise InputError("FILE", str(target), problem)
    text = c_source.private(path.read_text(), name)
    sources = c_source.renamed({target.name: text}, name)
    try:
        registration = module.check_registration(sources, {})
    except ValueError as error:
        raise InputError("FILE", str(target), str(error)) from None
    try:
        files.write(target, sources[target.name].encode())
    except OSError as error:
        raise InputError("FILE", str(target), f"cannot be written: {error.strerror or error}") from None
    origin = f"{owner} {template}, called {registration.name}" if owner else f"template {template}"
    required = (kernel or DEFAULT) if owner else NEEDED.get(template)
    option = f" --kernel {required}" if required else ""
    output.show(
        f"{target}: {c_source.DESCRIPTION[registration.kind]}, {origin}; use it with: "
        f"hourglass run L100M --set stack.{registration.kind}={target}{option}",
        whole_lines=True,
    )


def _source(template: str, kernel: str | None) -> tuple[Path, str]:
    """Return the file of a template or of a kernel's module, and "Linux X's" for the latter."""
    templates = {path.stem: path for path in TEMPLATES.glob("*.c")}
    if template in templates:
        if kernel is not None:
            raise InputError(
                "--kernel",
                kernel,
                f"needs --from and an algorithm of the kernel; {template} is a template for all kernels",
            )
        return templates[template], ""
    kernel = kernel or DEFAULT
    if kernel not in KERNELS:
        raise InputError("--kernel", kernel, f"must be one of {CHOICES}")
    with progress.display() as display:
        tree = source_tree.packaged(kernel, lambda text: display.kernel(0.0, text)).tree
    modules: dict[str, Path] = {}
    for path in (path for pattern in OF_KERNEL for path in tree.glob(pattern)):
        text = path.read_text(errors="replace")
        if "module_init(" not in text:
            continue  # a part of the kernel, like the file of reno
        try:
            c_source.private(text, "copy")
            modules[c_source.registered({path.name: text}).name] = path
        except ValueError:
            continue  # the file registers several modules, or none, or exports data
    if template not in modules:
        names = [*sorted(templates), *sorted(modules)]
        raise InputError("--from", template, f"{closest(template, names)}A template is one of {', '.join(names)}")
    return modules[template], f"Linux {kernel}'s"
