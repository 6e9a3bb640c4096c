"""Approved outputs: one file per page, compared with what the product prints now.

`COMMAND` approves every change. What depends on the time or the machine is masked: little in a
page of a stored run (`STORED`), more where the product looks at this machine (`HERE`), and all
times where the test itself has made the run (`JUST_MADE`).
"""

import difflib
import html
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.acceptance.product import REPOSITORY, Done

APPROVED = REPOSITORY / "tests/approved"
COMMAND = "scripts/test tests/acceptance/test_approved.py --approve"

Masks = tuple[tuple[str, str], ...]

STORED: Masks = (
    (re.escape(sys.executable), "PYTHON"),
    (re.escape(str(REPOSITORY)), "CHECKOUT"),
    (r"/\S*/user\b", "FOLDER"),
    (r"[ \t]+$", ""),
)
HERE: Masks = (
    (r"^ /(\S|\n )*?/user/", " FOLDER/"),  # however many lines it takes
    *STORED,
    (r"\n {3,5}(?=\S)", " "),  # a sentence goes on in the next line
    (r"directory: .*/user:", "directory: FOLDER:"),
    (r"\bon (\d+) x .*", r"on \1 x A PROCESSOR"),
    (r"\b[\d.]+ GiB", "N GiB"),
    (r"• .*sbatch: .*", "• (whether sbatch is here)"),
    (r"\b[0-9a-f]{32,}\b", "HASH"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?", "DATE"),
    (r" {2,}", "  "),  # a column is as wide as what is masked in it
    (r"─+", "─"),
)
JUST_MADE: Masks = (
    # The report that ends a run: stored runs have the same.
    (r"\n {20,}\S.*\n(?:(?!\$ orchestrator).*\n)*?(?=Ledger: )", "\n(the report)\n"),
    *HERE,
    (r"(?<=-cpu-)[0-9a-f]{6}(-[0-9a-f]{6})?", "HASH"),
    (r" s left.*", " s left"),
    (r"\b\d[\d.,e-]*( to \d[\d.,e-]*)?(?= ([KMG]iB|ms|s|min|(evaluations )?an hour)\b)", "N"),
    (r"\b0\.0\d{3}(?= (of \S+ )?(device-hours|hours open))", "N"),
)


def masked(text: str, masks: Masks) -> str:
    for pattern, mask in masks:
        text = re.sub(pattern, mask, text, flags=re.MULTILINE)
    return text


def screen(*dones: Done) -> str:
    """Commands and what they printed, as a terminal shows them."""
    texts = []
    for done in dones:
        errors = f"[stderr]\n{done.err}" if done.err else ""
        code = f"[exit code {done.code}]\n" if done.code else ""
        texts.append(f"$ orchestrator {' '.join(done.words)}\n{done.out}{errors}{code}")
    return "\n".join(texts)


@dataclass(frozen=True)
class Approved:
    """Compares a page with its approved file, or with `--approve` writes the file."""

    rewrite: bool

    def __call__(self, name: str, text: str) -> None:
        file = APPROVED / f"{name}.txt"
        text = text.strip("\n") + "\n"
        before = file.read_text() if file.exists() else ""
        if text == before:
            return
        if self.rewrite:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            return
        names = (f"approved/{name}", "printed now")
        diff = difflib.unified_diff(before.splitlines(), text.splitlines(), *names, lineterm="")
        pytest.fail("\n".join([*diff, "", f"To approve all changes: {COMMAND}"]), pytrace=False)

    def only(self, names: Iterable[str]) -> None:
        """Hold that there is no file of another page; with `--approve` remove those."""
        files = {
            f"{path.relative_to(APPROVED).with_suffix('')}" for path in APPROVED.rglob("*.txt")
        }
        others = sorted(files - set(names))
        assert self.rewrite or not others, f"no test makes {others}. To remove them: {COMMAND}"
        for name in others:
            (APPROVED / f"{name}.txt").unlink()


BLOCK = "p|div|li|tr|h[1-6]|dt|dd|pre|section|figure|figcaption|caption|table|summary"


def words_of(page: str) -> str:
    """The text of a page of HTML: a block in a line, a table's cells between bars."""
    for pattern, instead in (
        (r"(?s)<(style|svg|head)\b.*?</\1>", ""),
        (r"\s+", " "),
        (r"</t[dh]>", " | "),
        (rf"</?({BLOCK})\b[^>]*>", "\n"),
        (r"<[^>]*>", ""),
        (r" *\n\s*", "\n"),
    ):
        page = re.sub(pattern, instead, page)
    return html.unescape(page)


def keys_of(value: Any, place: str = "") -> set[str]:
    """Every key of a JSON document, and of what type its values are."""
    if isinstance(value, dict):
        return set().union(*(keys_of(inner, f"{place}.{key}") for key, inner in value.items()))
    if isinstance(value, list):
        return set().union({f"{place}[]"}, *(keys_of(inner, f"{place}[]") for inner in value))
    types = {bool: "boolean", int: "number", float: "number", str: "string"}
    return {f"{place}: {types.get(type(value), 'null')}"}
