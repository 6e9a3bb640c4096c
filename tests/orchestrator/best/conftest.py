"""Searches that have come to something, where the command line finds them."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.records.recorded import Result

if TYPE_CHECKING:
    from tests.conftest import Answer, Command

Lines = list[dict[str, Any]]
Tamper = Callable[[Path, Callable[[Lines], Any]], None]


def copied(run: Path, tmp_path: Path) -> Path:
    """The run with all beside it in the directory that is looked in by default."""
    root = run.parent.parent
    shutil.copytree(root, tmp_path / "artifacts/cmaes", dirs_exist_ok=True)
    return tmp_path / "artifacts/cmaes" / run.relative_to(root)


@pytest.fixture
def confirmed(confirmed_run: Path, tmp_path: Path) -> Path:
    """A search called "confirmed", of a sphere of two knobs: Go; persistence not shown."""
    return copied(confirmed_run, tmp_path)


@pytest.fixture(scope="session")
def refuted_run(
    tmp_path_factory: pytest.TempPathFactory, search_confirmed: Callable[..., Result]
) -> Path:
    return search_confirmed(
        tmp_path_factory.mktemp("refuted"),
        objective="noise",
        run_id="refuted",
        thresholds={"go_seeds": 2, "go_gain": 0.9},  # which no luck reaches
    ).directory


@pytest.fixture
def refuted(refuted_run: Path, tmp_path: Path) -> Path:
    """A search called "refuted", in which there was nothing to find: No-Go."""
    return copied(refuted_run, tmp_path)


@pytest.fixture
def plain(finished_run: Path, tmp_path: Path) -> Path:
    """A search of tier min, which nothing confirms."""
    return copied(finished_run, tmp_path)


@pytest.fixture
def embedded(plain: Path, tamper: Tamper) -> Path:
    """The same as if it had searched the ten synaptic knobs of a model of one layer."""
    tamper(plain, lambda lines: searched(lines, "nanochat", {"n_layer": 1, "tau_c": 0.8}))
    return plain


def searched(lines: Lines, name: str, settings: dict[str, Any]) -> None:
    """Let a ledger say that another objective with as many knobs was searched."""
    objective = registry.load(ObjectiveSpec(name=name, settings=settings))
    lines[0]["event"]["plan"].update(
        objective=objective.spec.model_dump(mode="json"),
        objective_fingerprint=objective.fingerprint,
        space=objective.space.model_dump(mode="json"),
        provenance=dict(objective.provenance),
    )


@pytest.fixture
def told(command: "Command") -> Callable[..., dict[str, Any]]:
    """What `best ... --json` says."""

    def ask(*arguments: str) -> dict[str, Any]:
        answer: Answer = command("best", *arguments, "--json")
        assert answer.code == 0, answer.err
        document: dict[str, Any] = orjson.loads(answer.out)
        return document

    return ask
