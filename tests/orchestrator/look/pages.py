"""An answer and sections with every kind of block, all of whose text is hostile."""

from types import SimpleNamespace

from budgets.formatting import plain
from orchestrator.look.page import Answer, Block, Section, commands, items, table
from orchestrator.look.plots import Drawing

HOSTILE = (
    "'\"><script>window.owned = 1</script><img src=x onerror='a()'>{{7*7}}\u202e\x1b[31m\x07|`"
)
MARKED = plain(HOSTILE)  # the same as a line of Markdown
SVG = "PHN2Zy8+"  # in base64
CANVAS = SimpleNamespace(savefig=lambda file, **_: file.write(b"<svg/>"))
FIELDS = ("title", "sentence", "but", "found", "sure", "cost", "next")


def hostile_answer() -> Answer:
    texts = {field: f"{field} {HOSTILE}" for field in FIELDS}
    return Answer(mood="caution", commands=(HOSTILE, HOSTILE), **texts)


def every_block() -> list[Block]:
    rows: list[dict[str, object]] = [
        {MARKED: MARKED, ">value": 3},
        {MARKED: "b", ">value": "**no**"},
    ]
    return [
        f"`code` and **bold** and {MARKED}",
        items([MARKED, "second"]),
        *table(MARKED, rows),
        Drawing("scores", HOSTILE, HOSTILE, CANVAS),
        commands(HOSTILE, "[a](javascript:a())"),
    ]


def every_section() -> tuple[Section, ...]:
    more = Section(f"More {HOSTILE}", [*every_block(), Section("inner", ["deep"])])
    return Section(HOSTILE, every_block()), Section("Second", [more])
