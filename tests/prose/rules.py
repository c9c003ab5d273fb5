# SPDX-License-Identifier: Apache-2.0
"""The rules of the writing guide that a machine can check. Each returns its violations."""

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.repository import FILES, ROOT, relative

from .code import NATIVE_TEXT, texts
from .markdown import Block, blocks, numbered_lines, sentences

RECORDED = ("docs/papers/", "docs/suites/", "docs/selftests/")
"""Folders of pages that commands write from results."""

VAGUE = frozenset({
    "asked", "found", "given", "got", "held", "here", "kept", "known", "made", "meant", "one", "ones",
    "others", "own", "said", "seen", "shown", "such", "taken", "there", "thing", "things",
    "told", "tried", "wanted", "what", "whole", "who", "whose",
})  # fmt: skip
"""Names that say nothing about their value. `place` and `way` are columns of records, `words` the parts of a line."""

PUBLIC = {
    "src/hourglass/contract/plan/hops.py": {"there"},
    "src/hourglass/contract/plan/steps.py": {"made"},
    "src/hourglass/contract/run_json.py": {"others"},
    "src/hourglass/contract/summary.py": {"held", "said"},
    "src/hourglass/errors.py": {"what"},
    "src/hourglass/results/diff.py": {"asked", "what"},
    "src/hourglass/results/explain/sentences.py": {"others"},
    "src/hourglass/scenario/wifi.py": {"others"},
    "src/hourglass/studies/findings.py": {"held", "tried"},
    "src/hourglass/studies/study.py": {"made", "there"},
    "agent/src/plan_parts.rs": {"there"},
    "agent/src/cause.rs": {"what"},
    "agent/src/ping.rs": {"what"},
    "agent/src/report.rs": {"what"},
}
"""Names that others' programs read: in scenarios, plans and events, with `--json` and from Python."""

PARALLEL = {
    "anatomy.py": "`results` computes the time per layer, `plots` draws it",
    "apps.py": "programs: as the scenario declares them, as the plan starts them, as results report them",
    "bounds.py": "`contract` has the language of bounds, `scenario` the table `[check]`",
    "compare.py": "`results` computes the comparison, `cli` prints it",
    "diff.py": "`results` computes the difference, `cli` prints it",
    "doctor.py": "`engine` checks the machine, `cli` prints the checks",
    "edge.py": "`scenario` declares media, policers and shapers of links, `plan` writes them for the driver",
    "schema.py": "the JSON Schemas of a scenario and of a study",
    "study.py": "`studies` runs a study, `cli` prints it",
    "streams.py": "`scenario` names the streams of a test, `plan` gives them addresses, ports and times",
    "testbed.py": "`scenario` declares the testbed, `report` draws it",
    "wifi.py": "Wi-Fi cells: `scenario` declares them, `results` computes their figures, `plots` draws them",
}
"""Names of modules that may recur: the same concept in parallel packages, with the role of each."""

CODE = {".py", ".rs", ".c", ".h", ".toml", ".js", ".css", ".sh", ".yml"}
"""Suffixes of files with comments and texts that people write; also Makefile and .ci/run."""
NO_PROSE = ("tests/prose/", "tests/test_prose.py", "src/hourglass/studies/old_formats.py")
"""The rules themselves, and the words of an earlier format."""

LONG = 25
"""The most words of a sentence."""

LINE = 120
"""The most characters of a line."""

OLD_PHRASES = re.compile(
    r"""
    \b(?:one's\ own|of\ (?:its|their|our|your|a\ user's|users')\ own|of\ (?:yours|ours|theirs))\b
    | \b(?:held\ against|holds?\ (?:it|them|this)\ (?:to|against)|in\ (?:the\ )?place\ of|instead\ stands?)\b
    | \b(?:anew|beside|besides|told|tells|mend|mends|mended|asked\ again|let\ be|but\ for|whoever|thereby|therewith)\b
    | \b(?:that|which|what|who)\ (?:is|are)\ there\b | \bas\ is\ \w+\ too\b
    | \b(?:has|have)\ not(?=[.,;:)]) | ,\ too(?=[.,;:)])
    | (?:^|(?<=[.:;]\ ))What\ (?!if\b)
    """,
    re.VERBOSE,
)
"""The old dialect: see the twelve habits."""


@dataclass(frozen=True, order=True)
class Violation:
    """One place that breaks a rule."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{relative(self.path)}:{self.line}: {self.text}"


def files(*suffixes: str, below: tuple[str, ...] = ("",)) -> list[Path]:
    """Return the files with one of the suffixes below one of the folders ("docs/")."""
    return sorted(path for path in FILES if path.suffix in suffixes and relative(path).startswith(below))


def pages() -> list[Path]:
    """Return the Markdown pages that people write."""
    return [path for path in files(".md") if not relative(path).startswith(RECORDED)]


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def _blocks(path: Path) -> list[Block]:
    return list(blocks(path.read_text()))


def bound_names(path: Path) -> Iterator[tuple[str, int]]:
    """Yield each name that a file binds, with its line: variables, parameters, functions and classes."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno


_RUST_NAME = re.compile(r"\b(?:let(?:\s+mut)?|fn|for|struct|enum|const|static)\s+(\w+)|\b(\w+)\s*:\s*(?=[&\w(\[])")
_C_NAME = re.compile(
    r"^\w[\w\s*]*?\b(\w+)\(|\b(?!goto\b|return\b)(?:\w+\s+|\*)(\w+)(?=\s*(?:=[^=]|;|,|\)|\[))", re.MULTILINE
)


def native_names(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the names that a Rust or C file binds, with their lines; a pattern finds most of them."""
    code = NATIVE_TEXT.sub(lambda match: "\n" * match[0].count("\n"), path.read_text())
    for match in (_RUST_NAME if path.suffix == ".rs" else _C_NAME).finditer(code):
        yield match[match.lastindex or 0], code.count("\n", 0, match.start()) + 1


def native_files() -> list[Path]:
    """Return the Rust files of the agent and the C files of the kernel, without generated ones."""
    listed = files(".rs", ".c", ".h", below=("agent/", "kernel/"))
    return [path for path in listed if path.name not in {"abi.rs", "tables.rs", "probe_abi.h"}]


def code_files() -> list[Path]:
    """Return the files of code that people write."""
    listed = [*files(*CODE), ROOT / "Makefile", ROOT / ".ci/run"]
    return [path for path in listed if not relative(path).startswith(NO_PROSE)]


def vague_names() -> Iterator[Violation]:
    """Yield the vague names."""
    for path in [*files(".py"), *native_files()]:
        permitted = PUBLIC.get(relative(path), set())
        for name, line in native_names(path) if path.suffix != ".py" else bound_names(path):
            if name.strip("_").lower() in VAGUE - permitted:
                yield Violation(path, line, f"`{name}` names nothing")


def docstrings() -> Iterator[Violation]:
    """Yield docstrings that begin with a clause instead of a verb or a noun."""
    kinds = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for path in files(".py"):
        for node in ast.walk(_tree(path)):
            text = ast.get_docstring(node) if isinstance(node, kinds) else None
            if text and re.match(r"(What|Whether|How|Whose|Where|Who)\b", text):
                yield Violation(path, getattr(node, "lineno", 1), text.split("\n")[0])


def repeated_classes() -> Iterator[Violation]:
    """Yield the classes of the package whose name another class has."""
    definitions = defaultdict[str, list[tuple[Path, int]]](list)
    for path in files(".py", below=("src/",)):
        for node in _tree(path).body:
            if isinstance(node, ast.ClassDef):
                definitions[node.name].append((path, node.lineno))
    for name, positions in definitions.items():
        if len(positions) > 1:
            yield from (
                Violation(path, line, f"class {name} exists {len(positions)} times") for path, line in positions
            )


def repeated_modules() -> Iterator[Violation]:
    """Yield the modules of the package whose name another module has."""
    definitions = defaultdict[str, list[Path]](list)
    for path in files(".py", below=("src/",)):
        if not path.name.startswith("__") and path.name not in PARALLEL:
            definitions[path.name].append(path)
    for name, paths in definitions.items():
        if len(paths) > 1:
            yield from (Violation(path, 1, f"module {name} exists {len(paths)} times") for path in paths)


def long_sentences() -> Iterator[Violation]:
    """Yield the sentences of more than `LONG` words."""
    for path in pages():
        for line, text in _sentences(path):
            if (length := len(text.split())) > LONG:
                yield Violation(path, line, f"{length} words: {text[:80]} …")


def old_phrases() -> Iterator[Violation]:
    """Yield the phrases of the old dialect, in pages and in the comments and texts of code. A page may ask “What …?”"""
    for path in [*pages(), *code_files()]:
        is_page = path.suffix == ".md"
        for line, text in _sentences(path) if is_page else texts(path):
            for match in OLD_PHRASES.finditer(text):
                if not (is_page and match[0].startswith("What") and text.endswith("?")):
                    yield Violation(path, line, f"“{match[0].strip()}” in: {text[max(0, match.start() - 40) :][:80]}")


def long_lines() -> Iterator[Violation]:
    """Yield the lines of pages above `LINE` characters. Tables, code, links and generated pages may have them."""
    for path in pages():
        if "<!-- generated: " in (text := path.read_text()):
            continue
        for number, line, is_code in numbered_lines(text):
            if not is_code and len(line) > LINE and not re.match(r"[|>]|\[\^| {4}", line) and "http" not in line:
                yield Violation(path, number, f"{len(line)} characters")


def comments_in_text() -> Iterator[Violation]:
    """Yield HTML comments inside pages, apart from the licence line and the marks of generated parts."""
    for path in pages():
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if "<!--" in line and not re.search(r"<!-- (SPDX-|generated: |end -->)", line):
                yield Violation(path, number, line.strip()[:80])


def _sentences(path: Path) -> Iterable[tuple[int, str]]:
    return (pair for block in _blocks(path) for pair in sentences(block))


RULES: dict[str, Callable[[], Iterator[Violation]]] = {
    "vague names": vague_names,
    "docstrings": docstrings,
    "class names that recur": repeated_classes,
    "module names that recur": repeated_modules,
    f"sentences above {LONG} words": long_sentences,
    "old phrases": old_phrases,
    f"lines above {LINE} characters": long_lines,
    "comments in text": comments_in_text,
}
