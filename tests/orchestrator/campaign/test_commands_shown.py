"""`status`, `report` and `run` of campaigns, as a person types them."""

from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from tests.orchestrator.campaign.conftest import SEARCHES

if TYPE_CHECKING:
    from tests.conftest import Command

TRAININGS = """
objective = "sphere"

[training]
dimension = 2

[campaign]
name = "toy"
seeds = [1, 2, 3]

[factors]
noise = [0.01, 0.02]
dimension = [2, 3]

[backend]
executor = "inline"
workers = 1
"""


def carried_out(command: "Command", tmp_path: Path, text: str) -> str:
    (tmp_path / "campaign.toml").write_text(text)
    answer = command("run", "campaign.toml")
    assert answer.code == 0, answer.err
    return answer.out


def test_a_campaign_of_trainings_ends_with_its_effects(command: "Command", tmp_path: Path) -> None:
    out = carried_out(command, tmp_path, TRAININGS)
    assert "noise: 0.02 against 0.01" in out
    assert "noise 0.02 with dimension 3" in out
    directory = tmp_path / "artifacts/cmaes/campaign/toy"
    manifest = orjson.loads((directory / "manifest.json").read_bytes())
    assert manifest["file"] == "campaign.toml"
    assert len(manifest["sha256"]) == 64
    effects = orjson.loads((directory / "effects.json").read_bytes())
    assert [e["levels"] for e in effects["campaign"]["effects"]] == [
        ["0.02"], ["3"], ["0.02", "3"],
    ]  # fmt: skip


def test_status_shows_the_matrix_and_report_draws_it(command: "Command", tmp_path: Path) -> None:
    carried_out(command, tmp_path, TRAININGS)
    directory = "artifacts/cmaes/campaign/toy"
    shown = command("status", directory)
    assert "noise0.02_dimension3" in shown.out
    assert "15 of 15 settled: 15 ok." in shown.out
    as_json = orjson.loads(command("status", "toy", "--json").out)
    assert as_json["statuses"] == {"ok": 15}
    assert command("report", directory, "--png", "effects", "--out", "drawn.png").code == 0
    assert (tmp_path / "drawn.png").stat().st_size > 10_000


def test_a_campaign_of_searches_is_compared_too(command: "Command", tmp_path: Path) -> None:
    out = carried_out(command, tmp_path, SEARCHES)
    assert "step: large against small" in out
    assert "All 4 runs are settled, 0 of them failed." in out.replace("\n", " ")
    directory = tmp_path / "artifacts/cmaes/campaign/searches"
    assert {path.name for path in directory.iterdir()} == {
        "effects.json",
        "manifest.json",
    }
    assert command("report", "searches", "--png", "effects", "--out", "drawn.png").code == 0
    assert (tmp_path / "drawn.png").stat().st_size > 10_000
    shown = command("status", "searches")
    assert "4 of 4 settled: 4 ok." in shown.out
    rebuilt = command("report", "searches", "--rebuild", "--json")
    assert orjson.loads(rebuilt.out)["campaign"]["measure"] == "mean score of the last generation"
