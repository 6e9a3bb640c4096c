"""From preset, profile, file and `--set` to one configuration, and where each value is from."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from objectives.files import read_toml
from objectives.nanochat.config import LENGTHS, NanochatConfig
from objectives.nanochat.program.presets import PRESETS, PROFILES, Named
from objectives.nanochat.program.settings import ProgramConfig
from objectives.settings import parse, unknown

TABLE = "training"
SETTINGS = (*NanochatConfig.model_fields, *ProgramConfig.model_fields)

Layer = tuple[str, Mapping[str, Any]]  # where settings come from, and the settings


@dataclass(frozen=True)
class Asked:
    """What a person gave."""

    file: Path | None = None
    preset: str | None = None
    profile: str | None = None
    assignments: Sequence[str] = ()  # "key=value" or "training.key=value"


@dataclass(frozen=True)
class Resolved:
    """Every setting with a value and its origin."""

    training: NanochatConfig
    program: ProgramConfig
    sources: Mapping[str, str]  # by setting: "default", "preset quick", "file run.toml", "--set"
    preset: str | None
    profile: str | None

    def values(self) -> dict[str, Any]:
        """All settings as plain JSON, in their order of definition."""
        return self.training.model_dump(mode="json") | self.program.model_dump(mode="json")

    def ignored_lengths(self) -> list[str]:
        """The lengths of training that are set and do not decide."""
        return [name for name in LENGTHS if getattr(self.training, name) is not None][1:]


def resolve(asked: Asked) -> Resolved:
    """Default < preset < profile < file < `--set`.

    Raises ValueError, in one line, on an unknown name, a wrong value or an unreadable file.
    """
    document = {} if asked.file is None else _document(asked.file)
    preset = asked.preset or document.get("preset")
    profile = asked.profile or document.get("profile")
    layers = [
        _named("preset", preset, PRESETS),
        _named("profile", profile, PROFILES),
        (f"file {asked.file}", document.get(TABLE, {})),
        ("--set", dict(_assigned(asked.assignments))),
    ]
    values: dict[str, Any] = {}
    sources = dict.fromkeys(SETTINGS, "default")
    for source, settings in layers:
        for name in settings:
            if name not in sources:
                raise unknown(f"training setting ({source})", name, SETTINGS)
        values |= settings
        sources |= dict.fromkeys(settings, source)
    return Resolved(
        training=parse(NanochatConfig, _of(values, NanochatConfig), TABLE),
        program=parse(ProgramConfig, _of(values, ProgramConfig), TABLE),
        sources=sources,
        preset=preset,
        profile=profile,
    )


def _of(
    values: Mapping[str, Any], model: type[NanochatConfig] | type[ProgramConfig]
) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in model.model_fields}


def _named(kind: str, name: str | None, known: Named) -> Layer:
    if name is None:
        return kind, {}
    if name not in known:
        raise unknown(kind, name, known)
    return f"{kind} {name}", known[name]


def _document(path: Path) -> dict[str, Any]:
    """The TOML file at `path`, its top level checked. Raises ValueError."""
    document = read_toml(path, f"--config {path}")
    expected = {"preset": str, "profile": str, TABLE: dict}
    for name, value in document.items():
        if name in SETTINGS:
            raise ValueError(f"--config {path}: {name} belongs below a line [{TABLE}]")
        if name not in expected:
            raise unknown(f"key in {path}", name, expected)
        if not isinstance(value, expected[name]):
            kind = "a table" if name == TABLE else "a name in quotes"
            raise ValueError(f"--config {path}: {name}: expected {kind}, got {value!r}")
    return document


def _assigned(assignments: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Name and value of each "key=value"; a value that is no JSON is taken as text."""
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key:
            raise ValueError(f"--set: expected KEY=VALUE, got {assignment!r}")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        yield key.strip().removeprefix(f"{TABLE}."), value
