"""An answer and sections with every kind of block, all of whose text is hostile."""

from budgets.blocks import Heading, Items, Met, Table, Text
from budgets.plain import plain
from orchestrator.look.blocks import (
    Answer,
    Block,
    Commands,
    Details,
    Figure,
    Log,
    Mood,
    Ruler,
    Section,
)
from orchestrator.look.run import Run

HOSTILE = (
    "'\"><script>window.owned = 1</script><img src=x onerror='a()'>{{7*7}}\u202e\x1b[31m\x07|`"
)
SHOWN = "<script>window.owned = 1</script>"
"""A part of it, as a reader must see it."""

MARKED = plain(HOSTILE)
"""The same as a line of Markdown."""

SVG = '<svg viewBox="0 0 9 9"><path d="M0 0L9 9" stroke="currentColor"/></svg>'


def hostile_answer(mood: Mood = "caution") -> Answer:
    fields = ("title", "sentence", "but", "meaning", "luck", "found", "sure", "cost", "next")
    texts = {field: f"{field} {HOSTILE}" for field in fields}
    return Answer(mood=mood, commands=(HOSTILE, HOSTILE), otherwise=HOSTILE, **texts)


def every_block() -> list[Block]:
    ruler, unmoved = Ruler(0.2, 0.9), Ruler(1.7, None)
    return [
        Heading(MARKED),
        Text(f"`code` and **bold** and {MARKED}"),
        Items([MARKED, "second"]),
        Table(
            MARKED, ["knob", ">value", "<where"], [[MARKED, 3, ruler], ["b", Met(False), unmoved]]
        ),
        Figure("scores", HOSTILE, HOSTILE, HOSTILE, SVG),
        Figure("unseen", "title", "caption", HOSTILE),
        Log(HOSTILE, [HOSTILE, "\tlast"]),
        Commands([HOSTILE]),
    ]


def every_section() -> tuple[Section, ...]:
    details = Details(f"More {MARKED}", [*every_block(), Details("inner", [Text("deep")])])
    tall = Table("tall", ["n"] * 8, [[str(n)] * 8 for n in range(40)])
    return (
        Section("first", MARKED, every_block()),
        Section("second", "Second", [details, tall]),
    )


def answer(run: Run) -> Answer:
    """Stands in for the answers of a run."""
    return Answer(
        title=f"Title of {run.plan.run_id}",
        sentence=f"{run.counts.settled} evaluations.",
        found="found",
        sure="sure",
        cost="cost",
        next="next",
        mood="good" if run.is_over else "open",
    )


def sections(run: Run) -> tuple[Section, ...]:
    """Stands in for the sections of a run: one changes with every record, one never does."""
    more = Details(f"{run.state.records} records", [Text("inside")])
    rows = [[str(number), "row"] for number in range(60)]
    return (
        Section("counted", "Counted", [Text(str(run.state.records)), more]),
        Section("same", "Same", [Details("Never changes", [Table("", [">n", "row"], rows)])]),
    )
