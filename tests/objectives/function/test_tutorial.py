"""The tutorial's functions and configurations work as they are printed; so does the template."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from tests.console import files_of

if TYPE_CHECKING:
    from tests.conftest import Command

TUTORIAL = Path(__file__).parents[3] / "docs/objective_function.md"
SMALL = (
    *(
        "--tier",
        "min",
        "--set",
        "search.population=4",
        "--max-evals",
        "8",
        "--assume-eval-seconds",
        "1",
    ),
    *("--executor", "inline", "--workers", "1"),
)
CONFIGURATIONS = ("search.toml", "measured.toml")


@pytest.fixture(autouse=True)
def tutorial(tmp_path: Path) -> Path:
    """Its files."""
    for name, text in files_of(TUTORIAL).items():
        (tmp_path / name).write_text(text)
    return tmp_path


def measurements(tmp_path: Path) -> list[dict[str, Any]]:
    found = (tmp_path / "artifacts/cmaes/phase1").glob("*/eval/*/*/*/summary.json")
    ended = [orjson.loads(path.read_bytes()) for path in found]
    assert [one["status"] for one in ended] == ["ok"] * 8
    return [one["measurement"] for one in ended]


def test_every_configuration_of_the_tutorial_is_tried() -> None:
    assert {name for name in files_of(TUTORIAL) if name.endswith(".toml")} == set(CONFIGURATIONS)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_search_of_the_tutorial_runs(name: str, command: "Command", tmp_path: Path) -> None:
    answer = command("phase1", name, *SMALL)

    assert answer.code == 0, answer.err
    measured = measurements(tmp_path)
    if name == "measured.toml":
        assert {one["steps"] for one in measured} == {100}
        assert all(one["train_flops"] > 0 for one in measured)
        assert all(one["metrics"]["width_squared"] >= 1 for one in measured)
    else:
        assert len({one["score"] for one in measured}) == 8


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_dry_run_of_the_tutorial_says_what_a_call_gets(
    name: str, command: "Command", tmp_path: Path
) -> None:
    answer = command("dry-run", name)

    assert answer.code == 0, answer.err
    assert f"python:{name.removesuffix('.toml').replace('search', 'train')}:evaluate" in answer.out
    assert f"  budget {50 if name == 'search.toml' else 100}\n" in answer.out
    assert not (tmp_path / "artifacts").exists()


def test_a_factor_of_a_campaign_may_be_fixed_in_each_condition(
    command: "Command", tutorial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = '[campaign]\nseeds = [1]\n[factors]\n"fixed.batch_size" = [8, 32]\n'
    (tutorial / "sizes.toml").write_text(files_of(TUTORIAL)["search.toml"] + campaign)

    answer = command("run", "sizes.toml", *SMALL[6:], "--json")

    assert answer.code == 0, answer.err
    started = (tutorial / "artifacts/cmaes/campaign/sizes").rglob("config.json")
    fixed = [orjson.loads(path.read_bytes())["objective"]["settings"]["fixed"] for path in started]
    assert sorted(one.get("batch_size", 0) for one in fixed) == [0, 8, 32]  # and the control


def test_the_template_describes_a_search_that_runs(
    command: "Command", tutorial: Path, tmp_path: Path
) -> None:
    text = (tutorial / "train.py").read_text().replace("momentum", "depth")
    (tutorial / "train.py").write_text(text.replace('knobs["depth"] *', '0.05 * knobs["depth"] *'))
    assert command("init", "--template", "function", "--out", "my.toml").code == 0

    answer = command("run", "my.toml", "--set", "search.tier=min", *SMALL[2:])

    assert answer.code == 0, answer.err
    assert len(measurements(tmp_path)) == 8
