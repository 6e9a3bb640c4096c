"""`report RUN RUN ...`: runs side by side, on a terminal, as a page, as Markdown, as JSON."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from budgets.plain import plain, printable
from orchestrator.cli.delivered import deliver
from orchestrator.cli.terminal import print_json, print_markdown
from orchestrator.look.run import Run
from orchestrator.records.recorded import load_state

if TYPE_CHECKING:
    from orchestrator.look.compare import Comparison


def compare(
    runs: Sequence[str], root: Path, form: str | None, out: Path | None, *, as_json: bool
) -> None:
    """Whether the runs' scores compare, gains, costs, what differs, knobs; as a file in `form`."""
    from orchestrator.look.compare import Comparison, document, places

    directories = places(runs, root)
    now = datetime.now(UTC)
    found = Comparison([Run(load_state(own), now, own) for own in directories])
    if form is not None:
        page = _html(found) if form == "html" else _markdown(found)
        deliver(page, directories[0], f"compare.{form}", out, as_json=as_json)
    elif as_json:
        print_json(document(found))
    else:
        print_markdown(_markdown(found))


def _markdown(found: "Comparison") -> str:
    from orchestrator.look.blocks import markdown
    from orchestrator.look.compare import sections

    names = " · ".join(map(plain, found.names))
    lead = f"# {names}: {found.heading}\n\n{plain(found.sentence)}\n\n"
    return printable(lead) + markdown(sections(found))


def _html(found: "Comparison") -> str:
    from orchestrator.look.compare import sections
    from orchestrator.look.page import Header, headline, page

    header = Header(" · ".join(found.names), f"{len(found.runs)} runs side by side")
    return page(header, headline(found.heading, found.sentence), sections(found))
