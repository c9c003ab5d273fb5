# SPDX-License-Identifier: Apache-2.0
"""Write the patch of a hook for real kernels: its changes to one source tree, as a mail for `git am` or `patch -p1`."""

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hourglass import resources
from hourglass.builders.kernel import hooks, source_tree, tree_spec
from hourglass.builders.kernel.hooks import Hook, Letter, Overlay
from hourglass.contract.kernels import SUITES
from hourglass.errors import HourglassError, InputError, MissingError
from hourglass.host import process

HOOK = "tsq"
"""The hook whose settings are useful outside a guest."""

DOCUMENTED = "Documentation/networking/ip-sysctl.rst"
AUTHOR = "Your Name <you@example.org>"
"""The patch's author and signature. Users replace it with their own."""

TOOLS = {"diff": "diffutils"}

Say = Callable[[str], None]
"""Receives a message before a slow step."""


def patch(kernel: str, say: Say) -> str:
    """Return the patch for a kernel, named as in `tree_spec`.

    Raises InputError if the name matches no kernel or an edit does not match the tree, MissingError without diff.
    """
    if lacking := process.missing_tools(TOOLS):
        raise MissingError("a patch needs diff", f"apt-get install -y {' '.join(lacking)}")
    mail_text = the_hook().patch
    assert mail_text is not None, "tsq.toml has it"
    with pristine(kernel, say) as tree:
        return letter(mail_text, tree, changed(tree))


def the_hook() -> Hook:
    """Return the hook of the patch."""
    (hook,) = (hook for hook in hooks.load(resources.KERNEL / "hooks") if hook.name == HOOK)
    return hook


@contextmanager
def pristine(kernel: str, say: Say) -> Iterator[Path]:
    """Yield the kernel's tree; that of a listed kernel includes its documentation."""
    if kernel in SUITES:
        yield source_tree.packaged(kernel, say, having=DOCUMENTED).tree
        return
    with tree_spec.open_tree(kernel, tree_spec.default_name(kernel), lambda _, step: say(step)) as source:
        yield source.tree


def changed(tree: Path) -> Overlay:
    """Return the patched files by their path in the tree."""
    hook = the_hook()
    if existing := [file.target for file in hook.file if (tree / file.target).exists()]:
        raise InputError("kernel tree", str(tree), f"has {existing[0]} already: it is patched")
    return hooks.hooked(tree, [hook], resources.KERNEL, hooks.tree_version(tree), documentation=True)


def letter(mail_text: Letter, tree: Path, files: Overlay) -> str:
    """Return the mail: author, subject, message, the files with their numbers of added and deleted lines, and the
    differences."""
    differences = {name: difference(tree, name, content) for name, content in sorted(files.items())}
    counts = {name: (count(text, "+"), count(text, "-")) for name, text in differences.items()}
    total = [sum(column) for column in zip(*counts.values(), strict=True)]
    version = ".".join(str(number) for number in hooks.tree_version(tree))
    return "\n".join(
        [
            f"From {'0' * 40} Mon Sep 17 00:00:00 2001",
            f"From: {AUTHOR}",
            f"Subject: [PATCH {version}] {mail_text.subject}",
            "",
            mail_text.message.strip(),
            "",
            f"Signed-off-by: {AUTHOR}",
            "---",
            *(
                f" {name} | {insertions} insertions, {deletions} deletions"
                for name, (insertions, deletions) in counts.items()
            ),
            f" {len(files)} files changed, {total[0]} insertions(+), {total[1]} deletions(-)",
            "",
            *differences.values(),
            "-- ",
            f"for Linux {version}; kernel/hooks/{HOOK}.toml of Hourglass",
            "",
        ]
    )


def difference(tree: Path, name: str, content: bytes) -> str:
    """Return a file's difference in git's format."""
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
    """Return the number of lines that a difference adds or deletes."""
    return sum(line.startswith(sign) and not line.startswith(sign * 3 + " ") for line in text.splitlines())
