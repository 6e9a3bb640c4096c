"""A point in the forms that people take it over in, whatever they are made of."""

import subprocess
import tomllib

import pytest

from orchestrator.best.configuration import Configuration, KnobValue

HOSTILE = (
    "; rm -rf ~",
    "$(reboot)",
    "`id`",
    "it's",
    "a\nb",
    "\x1b[2J",
    "\u202egnp",
    "back\\slash\t'\x7f",
    "-",
    "",
    "\N{SNOWMAN}",
)

KNOB = KnobValue("lr", 0.25, 0.1, 0.15)


def test_every_argument_arrives_as_it_is() -> None:
    line = Configuration("command", (KNOB,), arguments=HOSTILE).flags()
    assert line.isprintable()
    script = f"printf '%s\\0' {line}"
    said = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout  # noqa: S607
    assert tuple(said.decode().split("\0")[:-1]) == HOSTILE


@pytest.mark.parametrize("text", HOSTILE)
def test_a_file_says_every_text_without_showing_what_steers_a_terminal(text: str) -> None:
    training = {"argv": [text], "flags": {text or "none": 1.5}, "nothing": None}
    written = Configuration("command", (KNOB,), training=training).toml(f"of {text}")
    assert written.replace("\n", "").isprintable()
    read = tomllib.loads(written)
    assert read["objective"] == "command"
    assert read["training"] == {"argv": [text], "flags": {text or "none": 1.5}}


def test_a_file_says_what_moved_and_how_far() -> None:
    written = Configuration("command", (KNOB,), training={"a": 1}).toml("of a run")
    assert "# of a run\n# lr = 0.25 (baseline 0.1, moved +15% of its range)\n" in written


def test_nested_tables_survive() -> None:
    knobs = {"lr": {"kind": "log10", "min": 1e-5, "max": 0.1, "baseline": 0.25}, "b": {"max": 2}}
    written = Configuration("command", (KNOB,), training={"argv": ["a"], "knobs": knobs}).toml()
    assert tomllib.loads(written)["training"]["knobs"] == knobs
    assert "[training.knobs.lr]" in written
