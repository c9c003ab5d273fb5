# SPDX-License-Identifier: Apache-2.0
"""The patch of a hook for real kernels: what it changes in one source tree, as a mail for `git am` or `patch -p1`."""

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hourglass import resources
from hourglass.contract.kernels import SUITES
from hourglass.engine import process
from hourglass.engine.kernel import hooks, source, trees
from hourglass.engine.kernel.hooks import Hook, Letter, Overlay
from hourglass.errors import HourglassError, InputError, MissingError

HOOK = "tsq"
"""The hook whose knobs are of use outside a guest."""

DOCUMENTED = "Documentation/networking/ip-sysctl.rst"
AUTHOR = "Your Name <you@example.org>"
"""Who signs the patch off: to be replaced by who does."""

TOOLS = {"diff": "diffutils"}

Say = Callable[[str], None]
"""Hears what takes a while."""


def patch(kernel: str, say: Say) -> str:
    """The patch for a kernel as `trees` names them.

    Raises InputError where none is meant or the tree has no place for an edit, MissingError without diff.
    """
    if lacking := process.missing_tools(TOOLS):
        raise MissingError("a patch needs diff", f"apt-get install -y {' '.join(lacking)}")
    said = the_hook().patch
    assert said is not None, "tsq.toml has it"
    with pristine(kernel, say) as tree:
        return letter(said, tree, changed(tree))


def the_hook() -> Hook:
    """The hook that is the patch."""
    (hook,) = (hook for hook in hooks.load(resources.KERNEL / "hooks") if hook.name == HOOK)
    return hook


@contextmanager
def pristine(kernel: str, say: Say) -> Iterator[Path]:
    """The tree that is meant; of a kernel of the list with its documentation."""
    if kernel in SUITES:
        yield source.packaged(kernel, say, having=DOCUMENTED).tree
        return
    with trees.given(kernel, trees.names(kernel), lambda _, step: say(step)) as found:
        yield found.tree


def changed(tree: Path) -> Overlay:
    """The files that the patch leaves, by their path in the tree."""
    hook = the_hook()
    if there := [file.target for file in hook.file if (tree / file.target).exists()]:
        raise InputError("kernel tree", str(tree), f"has {there[0]} already: it is patched")
    return hooks.hooked(tree, [hook], resources.KERNEL, hooks.tree_version(tree), documentation=True)


def letter(said: Letter, tree: Path, files: Overlay) -> str:
    """The mail: who, what, why, the files with the lines they gain and lose, and the differences."""
    differences = {name: difference(tree, name, content) for name, content in sorted(files.items())}
    counts = {name: (count(text, "+"), count(text, "-")) for name, text in differences.items()}
    total = [sum(column) for column in zip(*counts.values(), strict=True)]
    version = ".".join(str(number) for number in hooks.tree_version(tree))
    return "\n".join(
        [
            f"From {'0' * 40} Mon Sep 17 00:00:00 2001",
            f"From: {AUTHOR}",
            f"Subject: [PATCH {version}] {said.subject}",
            "",
            said.message.strip(),
            "",
            f"Signed-off-by: {AUTHOR}",
            "---",
            *(f" {name} | {more} insertions, {fewer} deletions" for name, (more, fewer) in counts.items()),
            f" {len(files)} files changed, {total[0]} insertions(+), {total[1]} deletions(-)",
            "",
            *differences.values(),
            "-- ",
            f"for Linux {version}; kernel/hooks/{HOOK}.toml of Hourglass",
            "",
        ]
    )


def difference(tree: Path, name: str, content: bytes) -> str:
    """One file's difference in git's form."""
    old = tree / name
    with tempfile.NamedTemporaryFile() as new:
        new.write(content)
        new.flush()
        before = old if old.is_file() else Path("/dev/null")
        labels = [f"a/{name}" if old.is_file() else "/dev/null", f"b/{name}"]
        command = ["diff", "-up", "--label", labels[0], "--label", labels[1], str(before), new.name]
        done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 1:
        raise HourglassError(f"diff of {name}: {done.stderr.decode(errors='replace').strip() or 'no difference'}")
    head = [f"diff --git a/{name} b/{name}"] + ([] if old.is_file() else ["new file mode 100644"])
    return "\n".join([*head, done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")])


def count(text: str, sign: str) -> int:
    """How many lines a difference adds or takes away."""
    return sum(line.startswith(sign) and not line.startswith(sign * 3 + " ") for line in text.splitlines())
