"""Reports laid out: whoever reads them gets every word whole."""

from io import StringIO

import pytest
from rich.console import Console

from orchestrator.watch.laid_out import LaidOut

RUN = "target-command-" + 3 * "with-a-long-name-"
TEXT = f"# Title\n\n| run | found |\n|---|---|\n| {RUN} | {20 * 'many words '} |\n"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_no_name_is_cut(is_terminal: bool) -> None:
    page = StringIO()
    console = Console(file=page, width=60, force_terminal=is_terminal, color_system=None)

    console.print(LaidOut(TEXT), crop=False)

    lines = page.getvalue().splitlines()
    assert "…" not in page.getvalue()
    if is_terminal:
        assert max(map(len, lines)) <= 60
        assert "".join(line[1:31].strip() for line in lines).count(RUN[-20:]) == 1
    else:
        assert sum(RUN in line for line in lines) == 1
        assert not any(line.endswith(" ") for line in lines)
