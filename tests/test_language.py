"""Documents are in plain English: no "who" without a noun, few long sentences, few words."""

import re
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# The proofs: their sentences are formulas.
FORMULAS = {"paper.md"}
LONGEST, SHARE_LONGER, MEAN, MOST_WORDS = 30, 0.02, 17, 25_000

HEADLESS = re.compile(r"(?:[,;:.(]|\b(?:for|of|to|by|from|than|is|and|or|against)) who\b", re.I)
CODE = re.compile(r"```.*?```|^(?: {4}|\t).*?$", flags=re.DOTALL | re.MULTILINE)
ROWS = re.compile(r"^(?:\||#).*$", flags=re.MULTILINE)
BEGINS = re.compile(r"\n\s*\n|\n\s*(?=[-*] |\d+\. )|\n(?=\|)|\n(?=#)|^(?=#)|(?<!\\)\|")


def sentences(text: str) -> list[str]:
    """Those outside of code; a cell of a table and an item of a list begin a new one."""
    plain = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`\n]*`", "x", CODE.sub("", text)))
    parts = (re.split(r"(?<=[.!?])[\"*)\]]*\s+", " ".join(part.split())) for part in _parts(plain))
    return [one for one in chain.from_iterable(parts) if re.search(r"[A-Za-z]{2}", one)]


def _parts(text: str) -> list[str]:
    return BEGINS.split(text)


def headless(text: str) -> list[str]:
    return [
        sentence
        for sentence in sentences(text)
        if HEADLESS.search(sentence) or sentence.startswith("Who ")
    ]


def words(sentence: str) -> int:
    return len(re.findall(r"[A-Za-z][\w'-]*", sentence))


def test_every_who_has_its_noun() -> None:
    found = {page.name: headless(page.read_text(encoding="utf-8")) for page in PAGES}
    assert {name: one for name, one in found.items() if one} == {}


def test_few_sentences_are_long() -> None:
    pages = [page for page in PAGES if page.name not in FORMULAS]
    every = [sentence for page in pages for sentence in sentences(page.read_text(encoding="utf-8"))]
    longer = [one for one in every if words(one) > LONGEST]
    assert len(longer) < SHARE_LONGER * len(every), longer


def mean(texts: Iterable[str]) -> float:
    """Words in a sentence of running text: cells of tables and headings are shorter by nature."""
    lengths = [words(each) for text in texts for each in sentences(ROWS.sub("", text))]
    return sum(lengths) / len(lengths)


def test_sentences_are_short_on_average() -> None:
    pages = [page for page in PAGES if page.name not in FORMULAS]
    assert mean(page.read_text(encoding="utf-8") for page in pages) <= MEAN


def test_a_mean_is_of_running_text() -> None:
    assert mean(["# Head\n\n| a | cell |\n|---|---|\n\nFour words are here. Two words.\n"]) == 3


def test_documents_are_short() -> None:
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in PAGES) < MOST_WORDS


def test_headless_sentences_are_noticed() -> None:
    assert headless("A person who waits. Noise against\nwho knows.") == ["Noise against who knows."]
    assert sentences("One. Two\n\n- three\n\n```\nfour.\n```\n") == ["One.", "Two", "- three"]
