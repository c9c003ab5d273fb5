# SPDX-License-Identifier: Apache-2.0
"""Write verdicts as Markdown, with the pictures next to it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from papers import checks, paper_a, paper_b
from papers.beyond import COMPARED, QUANTITIES, side_by_side
from papers.contrasts import CONTRASTS
from papers.model import Claim, Verdict
from papers.quotes import QUOTES
from papers.study import JudgedFigure


@dataclass(frozen=True)
class Page:
    """A page: its file's name without suffix, its title, the introduction, and the head of the column of its claims."""

    name: str
    title: str
    notes: tuple[str, ...] = ()
    sentence: str = "the paper says"


KERNELS = (
    "A claim is *ok* if a figure differs between two kernels by more than the seeds do, and a sysctl that undoes the"
    " change gives the newer kernel the older one's figure."
)

PAGES = {
    "a": Page(
        "paper-a",
        "Paper A: The New TCP Modules on the Block: A Performance Evaluation of TCP Pacing and TCP Small Queues (2021)",
        paper_a.NOTES,
    ),
    "b": Page("paper-b", "Paper B: Towards 1 ms WLAN Latency (2018)", paper_b.DIFFERENCES),
    "kernels": Page("kernels", "The changes of six years of kernels", (KERNELS,), "with the newer kernel"),
    "beyond": Page("beyond", "Beyond the papers"),
}
"""The pages by the figures' groups."""

JOINT = (
    "The testbed of this page has the settings that the paper states. Each setting that the paper does not state was"
    " varied alone, and all claims of the figure were judged again: a setting that meets one claim may miss another. A"
    " cell is empty if the setting does not apply to the figure. A star marks a claim that is not counted. The"
    " settings:"
)
CONTRASTED = (
    "A claim that any runs meet proves nothing. Each claim was therefore judged again with the runs of a wrong setting,"
    " which should miss it."
)
NONE_COUNTED = "The kernel's code contradicts its sentences: [below](#contradicted-sentences)."
EXCLUDED = "These claims were measured like the others, but are not counted."


@dataclass(frozen=True)
class PageTable:
    """A table with a sentence above it."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    lead: str = ""

    def lines(self) -> list[str]:
        """Return the table as lines of Markdown."""
        rows = ["| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in self.rows]
        head = ["| " + " | ".join(self.head) + " |", "|" + "---|" * len(self.head)]
        return [*([self.lead, ""] if self.lead else []), *([*head, *rows, ""] if self.head else [])]


def quoted(claim: Claim) -> str:
    """Return a claim and, if it is a paper's, its words and their section."""
    if claim.id not in QUOTES:
        return claim.sentence
    section, words = QUOTES[claim.id]
    return f"{claim.sentence}: \u201c{words}\u201d ({section})"


def counts(verdicts: Sequence[Verdict]) -> str:
    """Return "12 ok, 3 missed, 2 skipped", without excluded claims."""
    number = Counter[str](verdict.word for verdict in verdicts if not verdict.claim.excluded)
    words = ("ok", "missed", "failed", "skipped")
    return ", ".join(f"{number[word]} {word}" for word in words if number[word] or word in ("ok", "missed"))


def table(judged: JudgedFigure) -> PageTable:
    """Return a figure's verdicts or, without claims, its settings side by side."""
    if judged.figure.claims:
        head = ("claim", PAGES[judged.figure.group].sentence, "tolerance", "measured", "verdict", "what the data show")
        counted = [verdict for verdict in judged.verdicts if not verdict.claim.excluded]
        return PageTable(head, [
            (verdict.claim.id, quoted(verdict.claim), verdict.claim.tolerance, verdict.measured, verdict.word,
             verdict.reason)
            for verdict in counted
        ]) if counted else PageTable((), (), NONE_COUNTED)  # fmt: skip
    if judged.evidence is None:
        return PageTable((), (), judged.reason)
    sides = side_by_side(judged.figure, judged.evidence)
    lead = f"Largest differences of {QUANTITIES[COMPARED]}: {'; '.join(sides.largest)}."
    return PageTable(sides.head, sides.rows, lead)


def excluded(figures: Sequence[JudgedFigure]) -> PageTable:
    """Return the claims that are not counted."""
    verdicts = [verdict for judged in figures for verdict in judged.verdicts if verdict.claim.excluded]
    rows = [
        (verdict.claim.id, quoted(verdict.claim), verdict.claim.excluded, verdict.measured, verdict.reason)
        for verdict in verdicts
    ]
    return PageTable(("claim", "the paper says", "contradicted by", "measured", "what the data show"), rows, EXCLUDED)


def joint(figures: Sequence[JudgedFigure]) -> PageTable:
    """Return the verdicts of all claims at each setting, which are columns. Its last row counts the met claims, and how
    many of the same claims are met by the testbed."""
    places = _with_runs(figures)
    unknowns = [verdict for judged in figures for verdict in judged.unknowns if _place(verdict) in places]
    settings = list(dict.fromkeys(verdict.setting for verdict in unknowns))
    verdicts = [*unknowns, *(verdict for judged in figures for verdict in judged.verdicts)]
    words = {(verdict.claim.id, verdict.setting): verdict.word for verdict in verdicts}
    claims = [verdict.claim for judged in figures if judged.unknowns for verdict in judged.verdicts]
    rows = [
        (f"{claim.id}{'*' if claim.excluded else ''}", *(words.get((claim.id, name), "") for name in ("", *settings)))
        for claim in claims
    ]
    totals = ["ok"]
    for setting in ("", *settings):
        ids = [claim.id for claim in claims if not claim.excluded and (claim.id, setting) in words]
        met, before = (sum(words[id, name] == "ok" for id in ids) for name in (setting, ""))
        totals.append(f"{met} of {len(ids)}" + (f" (testbed {before})" if setting else ""))
    return PageTable(("claim", "testbed", *settings), [*rows, totals] if settings else [])


def _with_runs(figures: Sequence[JudgedFigure]) -> set[tuple[str, str]]:
    """Return the figures and settings that have runs."""
    return {_place(verdict) for judged in figures for verdict in judged.unknowns if verdict.word != "skipped"}


def _place(verdict: Verdict) -> tuple[str, str]:
    return verdict.figure, verdict.setting


def _varied(figures: Sequence[JudgedFigure]) -> list[str]:
    """Return a line for each unknown, with its column and figures, and one for those without runs."""
    pairs = [(judged.figure.id, unknown) for judged in figures if judged.unknowns for unknown in judged.figure.unknowns]
    places = _with_runs(figures)
    lines = [
        f"*{label}*: {question} ({', '.join(ids)})."
        for label, question in dict.fromkeys((unknown.label, unknown.question) for _, unknown in pairs)
        if (ids := [id for id, unknown in pairs if unknown.label == label and (id, label) in places])
    ]
    pending = [f"*{unknown.label}* for {id}" for id, unknown in pairs if (id, unknown.label) not in places]
    return [*lines, *([f"Without runs so far: {', '.join(pending)}."] if pending else [])]


def contrasted(figures: Sequence[JudgedFigure]) -> PageTable:
    """Return the verdicts for the contrasts."""
    rows = []
    for judged in figures:
        for verdict in judged.contrasts:
            contrast = CONTRASTS[verdict.claim.id]
            right, wrong = (checks.name({"": value}) for value in (contrast.value, contrast.other))
            place = ", ".join(judged.figure.needs) if contrast.compared else contrast.study or judged.figure.id
            rows.append((verdict.claim.id, f"{wrong} for {right} in {place}", verdict.word))
    return PageTable(("claim", "contrast", "verdict"), rows, CONTRASTED)


def pages(figures: Sequence[JudgedFigure]) -> list[tuple[Page, list[JudgedFigure]]]:
    """Return the pages that have figures, with their figures."""
    groups = [(page, [judged for judged in figures if judged.figure.group == key]) for key, page in PAGES.items()]
    return [(page, members) for page, members in groups if members]


def markdown(page: Page, figures: Sequence[JudgedFigure], command: str, folder: Path) -> str:
    """Return a page; pictures are ID.png next to it, in `folder`."""
    verdicts = [verdict for judged in figures for verdict in judged.verdicts]
    computed = f"; every verdict on this page is computed: {counts(verdicts)}" if verdicts else ""
    lines = [
        "<!-- SPDX-License-Identifier: Apache-2.0 -->",
        f"# {page.title}",
        "",
        f"Made by `{command}`{computed}.",
        "",
    ]
    lines += [*page.notes, ""] if page.notes else []
    missed = [verdict for verdict in verdicts if verdict.word == "missed" and not verdict.claim.excluded]
    if missed:
        lines += ["Missed claims:", ""]
        lines += [f"* [{verdict.claim.id}](#{verdict.figure.lower()}): {verdict.claim.sentence}." for verdict in missed]
        lines.append("")
    for judged in figures:
        figure = judged.figure
        lines += [f"## {figure.id}", "", f"{figure.title}.", ""]
        if (folder / f"{figure.id}.png").is_file():
            lines += [f"![{figure.title}]({figure.id}.png)", ""]
        lines += [figure.note, ""] if figure.note else []
        lines += table(judged).lines()
    return "\n".join([*lines, *_sections(figures)])


def _sections(figures: Sequence[JudgedFigure]) -> list[str]:
    """Return the lines below the figures."""
    lines: list[str] = []
    if (verdicts := joint(figures)).rows:
        lines += ["## All claims at all settings", "", JOINT, "", *(f"* {line}" for line in _varied(figures)), ""]
        lines += verdicts.lines()
    if (contrasts := contrasted(figures)).rows:
        lines += ["## Contrasts", "", *contrasts.lines()]
    if (contradicted := excluded(figures)).rows:
        lines += ["## Contradicted sentences", "", *contradicted.lines()]
    return lines
