"""`init`: files to begin with, each of which works; nothing is written unless asked for."""

import os
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any, get_args

import orjson
import pytest

from orchestrator.cli.set_up import Template, template_text
from orchestrator.config import read_document

Command = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("nanochat_home")

TEMPLATES: tuple[str, ...] = get_args(Template)

TINY = (
    *("--set", "target_flops=2e8", "--set", "n_embd=16", "--set", "sequence_len=32"),
    *("--set", "val_windows=8", "--executor", "inline", "--workers", "1"),
)
"""An evaluation of 27 steps, in half a second."""


def whole(value: Any) -> Any:
    """Of a path below one's home the path."""
    return str(Path(value).expanduser()) if str(value).startswith("~/") else value


@pytest.fixture(autouse=True)
def _train(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module that a function is taken from: installed, so that a directory stays empty."""
    place = tmp_path_factory.mktemp("installed")
    (place / "train.py").write_text("def evaluate(knobs, seed, budget): return knobs['lr']")
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.setenv("PYTHONPATH", f"{place}:{os.environ.get('PYTHONPATH', '')}")


def left(place: Path) -> list[Path]:
    return sorted(place.iterdir())


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_is_shown_and_nothing_is_written(
    template: str, command: Command, tmp_path: Path
) -> None:
    shown = command("init", "--template", template)
    document = orjson.loads(command("init", "--template", template, "--json").out)

    assert shown.code == 0
    assert shown.out == template_text(template)  # type: ignore[arg-type]
    assert document == {"template": template, "text": shown.out}
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_that_is_written_explains_itself(
    template: str, command: Command, tmp_path: Path
) -> None:
    written = command("init", "--template", template, "--out", "my.toml")

    answer = command("explain", "my.toml", "--json")

    assert written.code == answer.code == 0, answer.err
    assert "orchestrator explain my.toml" in written.out
    assert {path.name for path in tmp_path.iterdir()} == {"my.toml"}
    assert "THIS-FILE" not in (tmp_path / "my.toml").read_text()
    assert "orchestrator run my.toml" in (tmp_path / "my.toml").read_text()
    values = orjson.loads(answer.out)["values"]
    for key, value in read_document(tmp_path / "my.toml").items():
        assert values[key] == {"value": whole(value), "source": "file my.toml"}


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_key_that_a_template_proposes_in_a_comment_is_one(
    template: str, command: Command, tmp_path: Path
) -> None:
    """`# max_hours = 1.0   # why` without the first sign is a line of the file."""
    lines = template_text(template).splitlines()  # type: ignore[arg-type]
    lines = [line[2:] if line.startswith("# ") and " = " in line else line for line in lines]
    (tmp_path / "my.toml").write_text("\n".join(lines))
    (tmp_path / "model.py").touch()  # for a template that names sources

    assert len(read_document(tmp_path / "my.toml")) > 0
    answer = command("explain", "my.toml", "--set", "search.known=null")

    assert answer.code == 0, answer.err


@pytest.mark.parametrize("template", ["smoke", "phase1", "function", "nanochat"])
def test_a_search_that_a_template_describes_can_be_planned(
    template: str, command: Command, tmp_path: Path
) -> None:
    command("init", "--template", template, "--out", "my.toml")

    answer = command("plan", "my.toml", "--json")

    assert answer.code == 0, answer.err
    (plan,) = (one["plan"] for one in orjson.loads(answer.out)["tiers"])
    assert plan["tier"] == ("min" if template == "smoke" else "target")


def test_the_smoke_test_runs(command: Command, tmp_path: Path) -> None:
    command("init", "--template", "smoke", "--out", "my.toml")

    few = ("--set", "search.population=4", "--max-evals", "4", "--assume-eval-seconds", "60")
    answer = command("run", "my.toml", *TINY, *few)

    assert answer.code == 0, answer.err
    assert (tmp_path / "artifacts/cmaes/phase1/smoke/best.json").exists()


def test_a_phase_2_asks_for_the_run_that_it_follows(command: Command, tmp_path: Path) -> None:
    command("init", "--template", "phase2", "--out", "my.toml")

    for verb in (("run", "my.toml"), ("plan", "my.toml")):
        answer = command(*verb, *TINY)
        assert answer.code == 2
        assert "no phase1 run 'target-nanochat-s1'" in answer.err


@pytest.mark.parametrize(
    ("template", "conditions"),
    [
        ("campaign", ["slow", "fast", "default_base", "synapses-off_base"]),
        pytest.param(
            "factorial",
            [
                *("matrix_lr0.01_modelsmall", "matrix_lr0.01_modellarge"),
                *("matrix_lr0.04_modelsmall", "matrix_lr0.04_modellarge"),
                *("default_base", "synapses-off_base"),
            ],
            marks=pytest.mark.slow,  # of a factorial that runs, there are others
        ),
    ],
)
def test_a_campaign_that_a_template_describes_runs(
    template: str,
    conditions: list[str],
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command("init", "--template", template, "--out", "my.toml")

    tiny = [word.replace("2e8", "9e8") for word in TINY]  # the large one has 21 steps then
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # a picture takes longer than all this
    answer = command("run", "my.toml", *tiny, "--set", "campaign.seeds=[1]", "--json")

    assert answer.code == 0, answer.err
    plan = orjson.loads((tmp_path / "artifacts/cmaes/campaign/my/run.json").read_bytes())
    assert [one["name"] for one in plan["campaign"]["conditions"]] == conditions
    assert orjson.loads(answer.out)["evaluations_by_status"] == {"ok": len(conditions)}


@pytest.mark.parametrize(
    "there", ["file", "empty file", "directory", "broken link", "link to a file"]
)
def test_nothing_is_ever_overwritten(there: str, command: Command, tmp_path: Path) -> None:
    place = tmp_path / "my.toml"
    if there == "directory":
        place.mkdir()
    elif there == "broken link":
        place.symlink_to("nowhere")
    elif there == "link to a file":
        (tmp_path / "other").write_text("mine")
        place.symlink_to("other")
    else:
        place.write_text("mine" if there == "file" else "")
    before = [(path.name, path.lstat().st_ino, path.lstat().st_size) for path in left(tmp_path)]

    answer = command("init", "--template", "smoke", "--out", "my.toml")

    assert answer.code == 2
    assert "my.toml: there is something already; name another file" in answer.err
    assert [(p.name, p.lstat().st_ino, p.lstat().st_size) for p in left(tmp_path)] == before
    assert [p.read_text() for p in left(tmp_path) if p.name == "other"] in ([], ["mine"])


@pytest.mark.parametrize("name", ["", ".", "nowhere/my.toml", "a\nb.toml", "\x1b[31m.toml", "/"])
def test_a_place_where_no_file_can_be_is_refused(
    name: str, command: Command, tmp_path: Path
) -> None:
    answer = command("init", "--template", "smoke", f"--out={name}")

    assert answer.code == 2
    assert answer.err.startswith("error: --out")
    assert answer.err.count("\n") == 1
    assert answer.err.removesuffix("\n").isprintable()
    assert not list(tmp_path.iterdir())


def test_a_template_that_is_none_is_refused_by_name(command: Command) -> None:
    answer = command("init", "--template", "phase3")

    assert answer.code == 2
    assert "'phase3'" in answer.err
    assert command("init").code == 2


def test_the_templates_are_in_the_package() -> None:
    package = resources.files("orchestrator.cli") / "templates"

    names = {entry.name for entry in package.iterdir()}
    assert names == {f"{template}.toml" for template in TEMPLATES}
