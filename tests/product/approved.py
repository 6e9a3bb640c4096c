"""Pages as they were approved, without what in them depends on the time or the machine."""

import difflib
import html
import re
import sys
from collections.abc import Callable, Sequence

import pytest

from tests.product.product import REPOSITORY, Done

APPROVED = REPOSITORY / "tests/approved"
COMMAND = "scripts/test tests/acceptance/test_approved.py --approve"
Masks = Sequence[tuple[str, str]]
Approve = Callable[[str, str, Masks], None]

STORED = (
    (r"/\S*/user\b", "FOLDER"),
    (r"[ \t]+$", ""),
    (r" on \S+, last record .* ago$", ""),  # on the machine of the stored runs it is not said
)
HERE = (  # what depends on the machine, which the product looks at
    (r"^ /(\S|\n )*?/user/", " FOLDER/"),  # however many lines it takes
    (re.escape(sys.executable), "PYTHON"),
    (re.escape(str(REPOSITORY)), "CHECKOUT"),
    *STORED,
    (r"\n {3,5}(?=\S)", " "),  # a sentence goes on in the next line
    (r"directory: .*/user:", "directory: FOLDER:"),
    (r"\bon (\d+) x .*", r"on \1 x A PROCESSOR"),
    (r"\b[\d.]+ GB", "N GB"),
    (r"• .*sbatch: .*", "• (whether sbatch is here)"),
    (r"\b[0-9a-f]{32,}\b", "HASH"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?", "DATE"),
    (r" {2,}", "  "),  # a column is as wide as what is masked in it
    (r"─+", "─"),
)
JUST_MADE = (  # all times
    (r"[ \t]+$", ""),
    # The report that ends a run: stored runs have the same.
    (r"\n {20,}\S.*\n\n\w+\n(?:(?!\$ orchestrator).*\n)*?(?=.*\nFound: )", "\n(the report)\n"),
    *HERE,
    (r"(?<=-cpu-)[0-9a-f]{6}(-[0-9a-f]{6})?", "HASH"),
    (r" s left.*", " s left"),
    (r"\b\d[\d.,e-]*( to \d[\d.,e-]*)?(?= ([kMG]B|bytes|ms|s|min|(evaluations )?an hour)\b)", "N"),
    (r"\b0\.0\d{3}(?= (of \S+ )?(device-hours|hours open|wall-clock hours))", "N"),
)
HTML = (  # a block is a line, a table's cells are between bars
    (r"(?s)<(style|svg|head)\b.*?</\1>", ""),
    (r"\s+", " "),
    (r"</t[dh]>", " | "),
    (r"</?(p|div|li|tr|h\d|d[td]|pre|section|fig\w+|caption|table|summary)\b[^>]*>", "\n"),
    (r"<[^>]*>", ""),
    (r" *\n\s*", "\n"),
)


def masked(text: str, masks: Masks) -> str:
    for pattern, mask in masks:
        text = re.sub(pattern, mask, text, flags=re.MULTILINE)
    return text


def lines_of(page: str) -> str:
    """What a reader sees of a page in HTML."""
    return html.unescape(masked(page, HTML))


def screen(*dones: Done) -> str:
    """Commands and what they printed, as a terminal shows them."""
    texts = []
    for done in dones:
        errors = f"[stderr]\n{done.err}" if done.err else ""
        code = f"[exit code {done.code}]\n" if done.code else ""
        texts.append(f"$ orchestrator {' '.join(done.words)}\n{done.out}{errors}{code}")
    return "\n".join(texts)


@pytest.fixture
def approved(request: pytest.FixtureRequest) -> Approve:
    """Compares a page with its approved file, or with `--approve` writes the file."""

    def compare(name: str, text: str, masks: Masks) -> None:
        file, text = APPROVED / f"{name}.txt", masked(text, masks).strip("\n") + "\n"
        assert not re.search(r"\d{7,}\.0\b", text), "a whole number is shown as one"
        before = file.read_text() if file.exists() else ""
        if request.config.getoption("--approve"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        elif text != before:
            pages = before.splitlines(keepends=True), text.splitlines(keepends=True)
            diff = "".join(difflib.unified_diff(*pages, f"approved/{name}", "printed now"))
            pytest.fail(f"{diff}\nTo approve all changes: {COMMAND}", pytrace=False)

    return compare
