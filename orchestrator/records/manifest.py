"""`manifest.json`: what a campaign consists of and where its parts lie, for people and programs.

A campaign has one ledger, and the manifest follows from it. Of an export, where each cell is a run
of its own, the manifest says which directories they lie in.
"""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from os.path import isdir
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from budgets.events import Reserved
from budgets.ledger import LEDGER
from budgets.matrix import Matrix, matrix_of
from budgets.plan import CampaignTerms, Condition, Factor
from budgets.state import RunState
from budgets.storage import document, read_plain, write_aside
from orchestrator.records.runs import attempt_place, is_there

MANIFEST = "manifest.json"

Kind = Literal["training", "slurm"]
"""What a cell is: an evaluation of one run, or a run of its own as a job."""

ONLY_SEED = 1
"""Of a run that was given none: a column all the same."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")  # others write manifests too


class ManifestRun(_Part):
    """One cell, and where it lies."""

    name: str
    directory: str  # from the manifest's own
    condition: str
    seed: int | None = None
    control: bool = False
    levels: dict[str, str] = {}
    status: str = ""  # when the manifest was written


class Manifest(_Part):
    """A campaign's parts. What is not known is left out."""

    name: str
    kind: Kind = "training"
    objective: str = ""  # whose scores these are
    file: str = ""  # it was described in, if in one
    sha256: str = ""  # of that file, when the campaign began
    total_runs: int
    conditions: tuple[Any, ...] = ()  # with their settings; of an export their names
    factors: tuple[Factor, ...] = ()
    seeds: tuple[int, ...] = ()
    controls: tuple[str, ...] = ()
    runs: tuple[ManifestRun, ...]
    statuses: dict[str, int] = {}  # when it was written
    ledger: dict[str, Any] = {}  # records and head, likewise

    @model_validator(mode="after")
    def _check(self) -> Self:
        for run in self.runs:
            if Path(run.directory).is_absolute():
                raise ValueError(f"{run.name}: expected a relative path, got {run.directory}")
        cells = [(run.condition, run.seed) for run in self.runs]
        if len(set(cells)) < len(cells):
            twice = next(cell for cell in cells if cells.count(cell) > 1)
            raise ValueError(f"condition {twice[0]}, seed {twice[1]} is there twice")
        return self

    def terms(self) -> CampaignTerms:
        """The campaign as one in a ledger would have it; knobs and settings as far as known."""
        known = {c["name"]: c for c in self.conditions if isinstance(c, dict)}
        firsts = {run.condition: run for run in reversed(self.runs)}
        names = dict.fromkeys(run.condition for run in self.runs)
        return CampaignTerms(
            name=self.name,
            conditions=tuple(
                Condition(
                    name=name,
                    settings=known.get(name, {}).get("settings", {}),
                    knobs=known.get(name, {}).get("knobs", {}),
                    levels=firsts[name].levels,
                    control=firsts[name].control,
                )
                for name in names
            ),
            seeds=tuple(dict.fromkeys(seed_of(run) for run in self.runs)),
            factors=self.factors or _factors(self.runs),
        )


def seed_of(run: ManifestRun) -> int:
    """The column it stands in."""
    return ONLY_SEED if run.seed is None else run.seed


def _factors(runs: Sequence[ManifestRun]) -> tuple[Factor, ...]:
    """Those that the runs have levels of, in the order in which they come."""
    levels: dict[str, dict[str, None]] = {}
    for run in runs:
        for name, level in run.levels.items():
            levels.setdefault(name, {})[level] = None
    return tuple(Factor(name=name, levels=tuple(own)) for name, own in levels.items())


def read_manifest(directory: Path) -> Manifest | None:
    """The manifest in `directory`; None where there is none. Raises ValueError on another file."""
    path = directory / MANIFEST
    try:
        return Manifest.model_validate_json(read_plain(path))
    except FileNotFoundError:
        return None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the whole"
        raise ValueError(f"{path} is no campaign's manifest: {place}: {first['msg']}") from error


def campaign_of_runs(run: str, root: Path) -> tuple[Path, Manifest] | None:
    """The campaign of that name, or in that directory, whose cells are runs; None without it.

    Raises ValueError where its manifest is another file.
    """
    for place in (Path(run), root / "campaign" / run):
        if not isdir(place) or is_there(
            place / LEDGER
        ):  # no directory also: what is no path at all
            continue
        if (manifest := read_manifest(place)) is not None:
            return place, manifest
    return None


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Replace the manifest in `directory`."""
    write_aside(directory / MANIFEST, document(manifest.model_dump(mode="json")))


def refresh(directory: Path, state: RunState, source: Mapping[str, str] | None = None) -> None:
    """Write the manifest of a campaign in one ledger as it stands.

    Without a `source` it keeps the one it has: that follows from no ledger.
    """
    if source is None:
        with suppress(ValueError):
            before = read_manifest(directory)
            source = {} if before is None else {"file": before.file, "sha256": before.sha256}
    write_manifest(directory, manifest_of(state, source or {}))


def source_of(path: Path) -> dict[str, str]:
    """The file that describes a campaign, as a manifest names it. Raises OSError."""
    return {"file": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def manifest_of(state: RunState, source: Mapping[str, str]) -> Manifest:
    """That of a campaign in one ledger, with how its cells stand."""
    matrix = matrix_of(state)
    terms = matrix.terms
    runs = [
        ManifestRun(
            name=f"{condition.name}_s{seed}",
            directory=f"eval/{_place(state, number, seed)}",
            condition=condition.name,
            seed=seed,
            control=condition.control,
            levels=condition.levels,
        )
        for number, condition in enumerate(terms.conditions)
        for seed in terms.seeds
    ]
    conditions = {one.name: one.model_dump(mode="json") for one in terms.conditions}
    objective = state.plan.objective["name"]
    found = manifest_of_runs(terms.name, "training", objective, runs, conditions)
    ledger = {"records": state.records, "head": state.head}
    return with_statuses(found.model_copy(update={"ledger": ledger, **source}), matrix)


def manifest_of_runs(
    name: str,
    kind: Kind,
    objective: str,
    runs: Sequence[ManifestRun],
    conditions: Mapping[str, Any] | None = None,
) -> Manifest:
    """The manifest of these runs; `conditions` is what is known of each, by its name."""
    names = dict.fromkeys(run.condition for run in runs)
    return Manifest(
        name=name,
        kind=kind,
        objective=objective,
        total_runs=len(runs),
        conditions=tuple((conditions or {}).get(name, name) for name in names),
        factors=_factors(runs),
        seeds=tuple(dict.fromkeys(seed_of(run) for run in runs)),
        controls=tuple(dict.fromkeys(run.condition for run in runs if run.control)),
        runs=tuple(runs),
    )


def _place(state: RunState, candidate: int, seed: int) -> str:
    """The directory of its last attempt, or of the first to come."""
    tries = state.generations[0].attempts.get((candidate, seed), ()) if state.generations else ()
    first = Reserved(generation=0, candidate=candidate, seed=seed, attempt=1, reserve_ms=0)
    return attempt_place(tries[-1].reserved if tries else first)


def with_statuses(manifest: Manifest, matrix: Matrix) -> Manifest:
    """The same with how its runs stand now."""
    terms = matrix.terms
    stand = {
        (condition.name, seed): cell.status
        for condition, row in zip(terms.conditions, matrix.rows, strict=True)
        for seed, cell in zip(terms.seeds, row, strict=True)
    }
    runs = tuple(
        run.model_copy(update={"status": stand[run.condition, seed_of(run)]})
        for run in manifest.runs
    )
    return manifest.model_copy(update={"runs": runs, "statuses": matrix.counts})
