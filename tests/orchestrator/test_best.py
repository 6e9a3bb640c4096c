"""`best`: what a search recommends, in every form, and what it is worth."""

import subprocess
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from budgets.formatting import shell_word
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.config import to_toml
from tests.orchestrator.conftest import forge

if TYPE_CHECKING:
    from tests.conftest import Command


def searched(plan: dict[str, Any]) -> None:
    """Let a plan say that the training core was searched: it has ten knobs, too."""
    settings = {"n_layer": 1, "tau_c": 0.8}
    objective = registry.load(ObjectiveSpec(name="nanochat", settings=settings))
    plan.update(
        objective=objective.spec.model_dump(mode="json"),
        objective_fingerprint=objective.fingerprint,
        space=objective.space.model_dump(mode="json"),
        provenance=dict(objective.provenance),
    )


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("other", "no search 'other' in artifacts/cmaes"),
        ("--as flags", "sphere takes no arguments"),
        ("--as toml", "sphere has no settings for another baseline"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(
    run: Path, command: "Command", arguments: str, complaint: str
) -> None:
    answer = command("best", *arguments.split())
    assert answer.code == 2
    assert complaint in answer.err


# In the forms that it is taken over in

HOSTILE = (
    *("; rm -rf ~", "$(reboot)", "`id`", "it's", "a\nb", "\x1b[2J", "\u202egnp"),
    *("back\\slash\t'\x7f", "-", "", "\N{SNOWMAN}"),
)


def test_every_argument_arrives_as_it_is() -> None:
    line = " ".join(map(shell_word, HOSTILE))
    assert line.isprintable()
    script = f"printf '%s\\0' {line}"
    said = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout  # noqa: S607
    assert tuple(said.decode().split("\0")[:-1]) == HOSTILE


def test_a_file_says_every_text_without_showing_what_steers_a_terminal() -> None:
    knobs = {"lr": {"kind": "log10", "min": 1e-5, "baseline": 0.25}}
    flags = {text or "none": 1.5 for text in HOSTILE}
    training = {"argv": [*HOSTILE], "flags": flags, "knobs": knobs}
    values = {f"training.{key}": value for key, value in (training | {"nothing": None}).items()}
    written = to_toml(values, *HOSTILE)
    assert written.replace("\n", "").isprintable()
    assert tomllib.loads(written) == {"training": training}


def test_of_the_core_arguments_and_file_are_settings(run: Path, command: "Command") -> None:
    forge(run, searched)
    text, document = command("best", "--as", "toml").out, command("best", "--json").out
    values = orjson.loads(document)["recommendation"]["knobs"]
    assert tomllib.loads(text) == {"training": {"n_layer": 1, **values}}
    arguments = command("best", "--as", "flags").out.split()
    taken = command("explain", "--json", "--set", "n_layer=1", *arguments)
    rows = {row["name"]: row["baseline"] for row in orjson.loads(taken.out)["knobs"]}
    assert rows == values
