"""Plots of stored runs, of made-up ones, and of what no run should be."""

import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import orjson
import pytest

from budgets.fold import fold
from budgets.ledger.chain import LEDGER, read
from budgets.words import number
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.execution.attempts import METRICS
from orchestrator.execution.engine import Engine
from orchestrator.look import draw
from orchestrator.look.blocks import Figure
from orchestrator.look.plots import drawings, figures
from orchestrator.look.run import Run
from orchestrator.planning.request import Request
from orchestrator.records.recorded import load_state
from orchestrator.running.searching import Searching
from orchestrator.running.session import Session
from orchestrator.running.signals import SignalStop
from tests.imported import imported_by
from tests.ledgers import sealed

GOLDEN = Path(__file__).parents[2] / "golden" / "runs"
RUNS = sorted(directory.name for directory in GOLDEN.iterdir())
NOW = datetime(2026, 11, 24, tzinfo=UTC)
MEASURED = "device_time timeline"
SEARCH = "scores device_time step_size correlations paths marginals timeline"
SHOWN = {
    "all_failed": "scores device_time paths timeline",
    **dict.fromkeys(("calibration", "proxy_check"), MEASURED),
    **dict.fromkeys(("campaign", "space_check"), f"effects {MEASURED}"),
    **dict.fromkeys(("capped", "interrupted", "smoke", "statuses"), SEARCH),
}
"""By run; every other run has gains as well."""

HOSTILE = "</text><script>x</script>$\\frac{&\u202e]]>\x00 style=\"a\" id='b' \N{PILE OF POO}"


def run_of(name: str) -> Run:
    return Run(load_state(GOLDEN / name), NOW, GOLDEN / name)


def drawn(run: Run) -> dict[str, Figure]:
    """Every plot that it has; each is fit for a page."""
    found = {figure.name: figure for figure in figures(run)}
    ids = Counter(each for figure in found.values() for each in check(figure))
    assert not ids or max(ids.values()) == 1
    return found


def check(figure: Figure) -> Iterator[str]:
    """Yield its ids. It has nothing that a page's policy forbids, or that leads out of it."""
    root = ElementTree.fromstring(figure.svg)  # noqa: S314 - of our own making
    assert {"viewBox", "role", "aria-label"} <= set(root.keys())
    ids, wanted = [each.get("id", "") for each in root.iter() if each.get("id")], set[str]()
    for each in root.iter():
        assert each.tag in {"svg", "g", "path", "use", "defs", "text", "tspan", "clipPath", "rect",
                            "pattern"}  # fmt: skip
        for key, value in each.items():
            assert key != "style"
            assert not key.startswith("on")
            if "href" in key or "url" in value:
                found = re.fullmatch(r"(?:url\()?#([\w.-]+)\)?", value)
                assert found, value
                wanted.add(found[1])
    assert wanted <= set(ids)
    assert all(each.get("font-size") for each in root.iter("text"))
    assert not re.search(r"\bnan\b|\binf\b", " ".join(each.get("d", "") for each in root.iter()))
    yield from ids


def texts(figure: Figure) -> list[str]:
    root = ElementTree.fromstring(figure.svg)  # noqa: S314 - of our own making
    return [text.strip() for text in root.itertext() if text.strip()]


def searched(root: Path, dimension: int, tier: str, phase: str = "phase1") -> Run:
    """A search of its own, evaluated in this process."""
    settings = {"dimension": dimension, "noise": 0.005}
    objective = registry.load(ObjectiveSpec(name="ellipsoid", settings=settings))
    request, engine = Request(phase, tier, objective), Engine(kind="inline", workers=2)  # type: ignore[arg-type]
    quiet = {"observe": lambda *_: None, "say": lambda _: None}
    with Session(root, engine, **quiet, stop=SignalStop()) as session:
        directory = Searching(request, engine.slots(), 1.0).carry_out(session).directory
    return Run(load_state(directory), NOW, directory)


@pytest.mark.parametrize("name", RUNS)
def test_every_golden_run_is_drawn(name: str) -> None:
    found = drawn(run_of(name))
    assert " ".join(found) == SHOWN.get(name, f"gains {SEARCH}")
    assert found == {figure.name: figure for figure in figures(run_of(name))}  # to the byte
    words = figures(run_of(name), with_svg=False)
    assert words == [replace(figure, svg="") for figure in found.values()]


@pytest.mark.parametrize("name", ["go", "statuses", "campaign", "space_check", "calibration"])
def test_every_beginning_of_a_run_is_drawn(name: str) -> None:
    records = read(GOLDEN / name / LEDGER).records
    for count in [*range(1, 9), *range(9, len(records), len(records) // 4)]:
        drawn(Run(fold(records[:count]), NOW))


def test_what_plots_say_is_what_the_run_says() -> None:
    run = run_of("go")
    found = {figure.name: figure.description for figure in figures(run, with_svg=False)}
    for value in (run.best_so_far, run.luck_so_far, *(run.noise_band or ())):
        assert number(value) in found["scores"]
    for one in run.gains:
        assert number(100 * (one.gain.mean or 0), 3) in found["gains"]
    for knob in run.knobs:
        assert number(knob.recommended) in found["paths"]
    assert str(len(run.attempts)) in found["timeline"]
    assert f"{3600 * sum(part.useful for part in run.usage):.3g} s" in found["device_time"]


def test_text_from_anywhere_is_text() -> None:
    run = run_of("campaign")
    assert run.campaign is not None
    run.__dict__["campaign"] = run.campaign.model_copy(update={"measure": HOSTILE})
    figure = drawn(run)["effects"]
    shown = " ".join(texts(figure))
    assert all(part in shown for part in ("<script>", "style=\"a\" id='b'", "$\\frac{"))
    assert not {"\u202e", "\x00"} & set(figure.svg + figure.description + figure.caption)


@pytest.mark.parametrize("score", [1e100, -1e100])
def test_huge_scores_hide_nothing_and_break_nothing(score: float, tmp_path: Path) -> None:
    lines = [orjson.loads(line) for line in (GOLDEN / "go" / LEDGER).read_bytes().splitlines()]
    settled = [line["event"] for line in lines if line["event"].get("score") is not None]
    for event in settled[3::9]:
        event["score"] = score
    (tmp_path / LEDGER).write_bytes(sealed(lines))
    found = drawn(Run(fold(read(tmp_path / LEDGER).records), NOW))
    assert {"scores", "gains", "paths", "marginals", "timeline"} <= set(found)


@pytest.mark.parametrize("dimension", [2, 40])
def test_any_number_of_knobs(dimension: int, tmp_path: Path) -> None:
    run = searched(tmp_path, dimension, "target")
    found, names = drawn(run), {knob.name for knob in run.knobs}
    for name in ("paths", "marginals"):
        assert len(names & set(texts(found[name]))) == min(12, dimension)
        assert (str(dimension - 12) in found[name].caption) == (dimension > 12)


def test_loss_curves_are_drawn_as_far_as_they_can_be_read(tmp_path: Path) -> None:
    run = Run(load_state(GOLDEN / "go"), NOW, tmp_path)
    for at, one in enumerate(run.attempts):
        place = tmp_path / one.place
        place.mkdir(parents=True)
        losses = [[3 - step / 50, 10.0**step, "nan"][at % 3] for step in range(100)]
        beats = [orjson.dumps({"step": step, "loss": loss}) for step, loss in enumerate(losses)]
        (place / METRICS).write_bytes(b"\n".join(beats))
    assert "step" in texts(drawn(run)["losses"])


def test_files_for_a_paper(tmp_path: Path) -> None:
    drawing = drawings(run_of("go"))["scores"]
    for form, begin in {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}.items():
        first, again = tmp_path / f"1.{form}", tmp_path / f"2.{form}"
        draw.write(drawing, first)
        draw.write(drawing, again)
        assert first.read_bytes().startswith(begin)
        assert first.read_bytes() == again.read_bytes()
    with pytest.raises(ValueError, match=r"\.png"):
        draw.write(drawing, tmp_path / "scores.gif")


def test_matplotlib_is_there_only_when_something_is_drawn() -> None:
    assert "matplotlib" not in imported_by("import orchestrator.look.plots")


@pytest.mark.slow
def test_the_largest_run_is_drawn_in_seconds(tmp_path: Path) -> None:
    run = searched(tmp_path, 10, "max", "phase2")
    assert len(run.attempts) > 2160
    figures(run, with_svg=False)  # what the run itself takes is measured elsewhere
    began = time.process_time()
    found = figures(run)
    assert time.process_time() - began < 5
    assert sum(len(figure.svg) for figure in found) < 2_000_000
