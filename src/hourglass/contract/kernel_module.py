# SPDX-License-Identifier: Apache-2.0
"""Custom modules of a guest's kernel: a scenario names them, the engine builds them."""

from dataclasses import dataclass

BPF_SUFFIX = ".bpf.c"


@dataclass(frozen=True)
class KernelModule:
    """The C sources of a congestion control or qdisc, and its name.

    `files`: (name, text). `parameters`: (name, value) as on the kernel's command line; they do not change the build.
    `flags`: for the compiler."""

    name: str
    files: tuple[tuple[str, str], ...]
    parameters: tuple[tuple[str, str], ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def is_bpf(self) -> bool:
        """Tell whether the source is BPF, which the guest loads. Other sources are compiled into its kernel."""
        return self.files[0][0].endswith(BPF_SUFFIX)
