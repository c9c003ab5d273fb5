# SPDX-License-Identifier: Apache-2.0
"""Names and prose follow the writing guide."""

import re

import pytest
from prose.markdown import blocks, sentences
from prose.rules import OLD_PHRASES, RULES, VAGUE, bound_names

from tests.repository import ROOT


@pytest.mark.parametrize("rule", RULES)
def test_no_violation(rule: str) -> None:
    assert not [str(violation) for violation in RULES[rule]()], "python -m tests.prose FOLDER lists a folder's"


@pytest.mark.parametrize(
    "text",
    [
        "a qdisc of your own",
        "held against a kernel",
        "It is compiled anew.",
        "What is run is kept.",
        "a kernel has not.",
        "It is fast, too.",
    ],
)
def test_old_phrases_are_found(text: str) -> None:
    assert OLD_PHRASES.search(text)


@pytest.mark.parametrize(
    "text", ["your own qdisc", "compared with a kernel", "It is compiled again.", "What if it fails"]
)
def test_new_phrases_pass(text: str) -> None:
    assert not OLD_PHRASES.search(text)


def test_sentences_of_a_page() -> None:
    page = "# Head\n\nOne two. Three `a b c` [four](x.md#y)!\n* item five\n\n```sh\ncode code\n```\n| a | b |\n"
    assert [text for block in blocks(page) for _, text in sentences(block)] == [
        "One two.",
        "Three `x` four!",
        "item five",
    ]


def test_vague_names_are_bound_names() -> None:
    names = {name for name, _ in bound_names(ROOT / "tests/prose/rules.py")}
    assert {"path", "below", "Violation", "long_sentences"} <= names
    assert not names & VAGUE


def test_words_of_the_guide_are_in_the_glossary() -> None:
    table = (ROOT / "docs/contributing/style.md").read_text().partition("## Glossary")[2]
    words = re.findall(r"^\| ([^|]+) \| [^|-]+ \|$", table, re.MULTILINE)[1:]
    glossary = (ROOT / "docs/reference/glossary.md").read_text()
    defined = set(", ".join(re.findall(r"^\| ([^|]+) \|", glossary, re.MULTILINE)).split(", "))
    assert len(words) > 20
    assert {word for line in words for word in line.split(", ")} <= defined
