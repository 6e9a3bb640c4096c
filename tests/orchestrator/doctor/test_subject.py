"""Which run a configuration has in mind, for what is looked at."""

from pathlib import Path

import pytest

from orchestrator.config import Layers, resolve
from orchestrator.doctor.subject import EVERY_TIER, Subject, subject_of

SPHERE = """
objective = "sphere"
runs_dir = "elsewhere"

[backend]
executor = "local"
workers = 1
"""

CAMPAIGN = """
[campaign]
name = "trial"
cell = "{cell}"
seeds = [1, 2, 3]
controls = false

[search]
tier = "min"

[[campaign.conditions]]
name = "loud"
training.noise = 0.05

[[campaign.conditions]]
name = "quiet"
training.noise = 0.01
"""


def subject(directory: Path, text: str, *assignments: str) -> Subject:
    file = directory / "a file.toml"
    file.write_text(text)
    return subject_of(resolve(Layers(file, assignments=assignments)), as_json=False, quick=True)


def test_the_file_says_where_and_on_what(tmp_path: Path) -> None:
    found = subject(tmp_path, SPHERE)
    assert found.objective.spec.name == "sphere"
    assert found.conduct.root == Path("elsewhere")
    assert (found.conduct.engine.kind, found.conduct.engine.workers) == ("local", 1)
    assert found.objectives == {"": found.objective}


def test_a_search_without_a_tier_may_make_the_evaluations_of_any(tmp_path: Path) -> None:
    assert subject(tmp_path, SPHERE).evaluations == EVERY_TIER
    assert EVERY_TIER["phase1 min"] == 16
    one = subject(tmp_path, f"{SPHERE}[search]\nphase = 'phase2'\ntier = 'target'\n")
    assert one.evaluations == {"phase2 target": 720}


@pytest.mark.parametrize(("cell", "evaluations"), [("training", 6), ("search", 6 * 16)])
def test_a_campaign_has_its_own_number_of_evaluations(
    tmp_path: Path, cell: str, evaluations: int
) -> None:
    found = subject(tmp_path, SPHERE + CAMPAIGN.format(cell=cell))
    assert found.evaluations == {"campaign trial": evaluations}


@pytest.mark.parametrize("cell", ["training", "search"])
def test_every_condition_of_a_campaign_is_looked_at(tmp_path: Path, cell: str) -> None:
    found = subject(tmp_path, SPHERE + CAMPAIGN.format(cell=cell))
    noise = {name: one.spec.settings["noise"] for name, one in found.conditions.items()}
    assert noise == {"loud": 0.05, "quiet": 0.01}
    assert list(found.objectives) == ["", "loud", "quiet"]


def test_the_same_words_name_it_again(tmp_path: Path) -> None:
    found = subject(tmp_path, SPHERE, "noise=0.05")
    assert found.options == f" '{tmp_path / 'a file.toml'}' --set noise=0.05"
