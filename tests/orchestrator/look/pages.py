"""An answer and sections with every kind of block, all of whose text is hostile."""

from budgets.formatting import plain
from orchestrator.look.blocks import (
    Answer,
    Block,
    Commands,
    Details,
    Figure,
    Items,
    Log,
    Section,
    Table,
    Text,
    ruler,
)

HOSTILE = (
    "'\"><script>window.owned = 1</script><img src=x onerror='a()'>{{7*7}}\u202e\x1b[31m\x07|`"
)
MARKED = plain(HOSTILE)  # the same as a line of Markdown
SVG = '<svg viewBox="0 0 9 9"><path d="M0 0L9 9" stroke="currentColor"/></svg>'
FIELDS = ("title", "sentence", "but", "meaning", "chance", "found", "sure", "cost", "next")


def hostile_answer() -> Answer:
    texts = {field: f"{field} {HOSTILE}" for field in FIELDS}
    return Answer(mood="caution", commands=(HOSTILE, HOSTILE), otherwise=HOSTILE, **texts)


def every_block() -> list[Block]:
    rows: list[list[object]] = [
        [MARKED, 3, ruler(0.2, 0.9)],
        ["b", "**no**", ruler(1.7, None)],
    ]
    return [
        Text(f"`code` and **bold** and {MARKED}"),
        Items([MARKED, "second"]),
        Table(MARKED, ["knob", ">value", "where"], rows),
        Figure("scores", HOSTILE, HOSTILE, HOSTILE, SVG),
        Figure("unseen", "title", "caption", HOSTILE),
        Log(HOSTILE, [HOSTILE, "\tlast"]),
        Commands([HOSTILE]),
    ]


def every_section() -> tuple[Section, ...]:
    details = Details(f"More {MARKED}", [*every_block(), Details("inner", [Text("deep")])])
    return Section("first", MARKED, every_block()), Section("second", "Second", [details])
