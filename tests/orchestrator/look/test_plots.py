"""Plots of stored runs, of made-up ones, and of what no run should be."""

import re
import time
from pathlib import Path
from xml.etree import ElementTree

import orjson
import pytest

from budgets.ledger import LEDGER, read
from budgets.state import fold
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.execution.devices import Engine
from orchestrator.look.plots import Drawing, drawings
from orchestrator.look.run import Run
from orchestrator.matrix.carry_out import carry_out_search
from orchestrator.records.runs import load_state
from orchestrator.run.session import Session
from tests.asking import config_for
from tests.imported import imported_by
from tests.orchestrator.look.golden import GOLDEN, NOW, golden
from tests.product.books import sealed

SEARCH = "scores paths marginals step_size correlations device_time timeline"
SHOWN = {  # a run of each kind
    "all_failed": "scores paths device_time timeline",
    "proxy_check": "device_time timeline",
    "campaign": "gains device_time timeline",
    "space_check": "effects device_time timeline",
    "statuses": SEARCH,
    "phase2": f"gains {SEARCH}",
}


def drawn(run: Run) -> dict[str, Drawing]:
    """Every plot that it has; each is a picture of numbers."""
    found = drawings(run)
    for drawing in found.values():
        paths = " ".join(each.get("d", "") for each in of(drawing).iter())
        assert not re.search(r"\bnan\b|\binf\b", paths)
    return found


def of(drawing: Drawing) -> ElementTree.Element:
    return ElementTree.fromstring(drawing.file("svg"))  # noqa: S314 - of our own making


def texts(drawing: Drawing) -> list[str]:
    return [text.strip() for text in of(drawing).itertext() if text.strip()]


def searched(root: Path, dimension: int, tier: str, phase: str = "phase1") -> Run:
    """A search of its own, evaluated in this process."""
    spec = ObjectiveSpec(name="ellipsoid", settings={"dimension": dimension, "noise": 0.005})
    request = config_for(phase, tier, registry.load(spec), assumed_seconds=1.0)
    engine = Engine(kind="inline", workers=2)
    with Session(root, engine, observe=lambda *_: None, say=lambda _: None) as session:
        directory = carry_out_search(session, request, engine.slots()).directory
    return Run(load_state(directory), NOW, directory)


@pytest.mark.parametrize(("name", "shown"), SHOWN.items())
def test_every_kind_of_run_is_drawn(name: str, shown: str) -> None:
    assert " ".join(drawn(golden(name))) == shown


@pytest.mark.parametrize("name", ["statuses", "campaign", "space_check"])
def test_every_beginning_of_a_run_is_drawn(name: str) -> None:
    records = golden(name).state.records
    for count in [1, 2, 5, *range(9, records, records // 3)]:
        drawn(golden(name, count))


def test_text_from_anywhere_is_text() -> None:
    run, parts = golden("go"), ("<script>", "style=\"a\" id='b'", "$\\frac{")
    hostile = [f"{part}\u202e\x00" for part in parts] + [knob.name for knob in run.knobs[3:]]
    named = zip(run.knobs, hostile, strict=True)
    run.__dict__["knobs"] = tuple(knob.model_copy(update={"name": name}) for knob, name in named)
    figure = drawn(run)["paths"]
    for part in parts:
        assert part in " ".join(texts(figure))
    assert not {"\u202e", "\x00"} & set("".join(texts(figure)) + figure.caption)


@pytest.mark.parametrize("huge", [1e100, -1e100])
def test_huge_scores_hide_nothing_and_break_nothing(tmp_path: Path, huge: float) -> None:
    """The best score is always shown; far worse ones lie beyond the edge."""
    lines = [orjson.loads(line) for line in (GOLDEN / "go" / LEDGER).read_bytes().splitlines()]
    settled = [line["event"] for line in lines if line["event"].get("score") is not None]
    searched = [event for event in settled if event["comparison"] is None]
    for event in searched[3::9]:
        event["score"] = huge
    (tmp_path / LEDGER).write_bytes(sealed(lines))
    found = drawn(Run(fold(read(tmp_path / LEDGER)), NOW))
    assert {"scores", "gains", "paths", "marginals", "device_time"} <= set(found)
    low, high = found["scores"].canvas.axes[0].get_ylim()
    assert (low < -1e99, high < 1e99) == (huge < 0, True)
    for name, axis in (("paths", "xlim"), ("marginals", "ylim")):  # one scale in every chart
        assert len({getattr(axes, f"get_{axis}")() for axes in found[name].canvas.axes}) == 1


@pytest.mark.slow
def test_of_many_knobs_those_that_matter_are_drawn(tmp_path: Path) -> None:
    run = searched(tmp_path, 14, "min")
    found, names = drawn(run), {knob.name for knob in run.knobs}
    for name in ("paths", "marginals"):
        assert len(names & set(texts(found[name]))) == 12


def test_matplotlib_is_there_only_when_something_is_drawn() -> None:
    assert "matplotlib" not in imported_by("import orchestrator.look.plots")


@pytest.mark.slow
def test_the_largest_run_is_drawn_in_seconds(tmp_path: Path) -> None:
    run = searched(tmp_path, 10, "max", "phase2")
    drawings(run)  # what the run itself takes is measured elsewhere
    began = time.process_time()
    found = [drawing.url() for drawing in drawings(run).values()]
    assert time.process_time() - began < 5
    assert 100_000 < sum(map(len, found)) < 2_000_000


def test_a_plot_for_a_paper_is_a_file_of_that_form(tmp_path: Path) -> None:
    plot = drawings(golden("go"))["scores"]
    for form, start in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
        assert plot.save(tmp_path / f"plot.{form}").read_bytes().startswith(start)
