"""What may stand in a configuration file, table by table, with the defaults.

What a value means is said where it is used; here is what it may be.
"""

from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from budgets.terms import PositiveSeed, SearchMethod, Tier, VariantName
from orchestrator.capacity.terms import Backpressure as Controller
from orchestrator.trackers.names import Tracker

LARGEST = 1e9
"""Of any number of hours, seconds or money: a larger one is a slip, and no clock counts so far."""

MOST_SEEDS = 1000  # of one point

One = TypeVar("One")

Amount = Annotated[float, Field(gt=0, le=LARGEST)]


class Section(BaseModel):
    """A table of the file. A wrong type is a mistake, not something to convert."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @classmethod
    def keys(cls) -> dict[str, str]:
        """The table's keys as people write them, and their fields."""
        return {field.alias or name: name for name, field in cls.model_fields.items()}


class Search(Section):
    """Which search, and how it proposes."""

    phase: Literal["phase1", "phase2"] = "phase1"
    tier: Tier | None = None  # no search begins without it
    run_id: str | None = None  # None: tier, objective and seed
    seed: PositiveSeed = 1
    method: SearchMethod | None = None  # None: guided
    sigma0: float | None = Field(default=None, gt=0, le=0.3)  # None: the method's
    population: int | None = None  # None: 2 x devices
    generations: int | None = Field(default=None, ge=1)  # None: what the tier pays for
    seeds_per_candidate: int | None = Field(default=None, ge=1)  # None: the tier's
    warm_start: str | None = None  # a run
    known: str | None = None  # a file
    follows: str | None = Field(default=None, alias="from")  # a run, of a phase 2
    variant: VariantName | None = None  # of a phase 2
    proxy: float | None = Field(default=None, gt=0, lt=1)  # a share of an evaluation's FLOPs


class Budget(Section):
    """What a run may never exceed."""

    max_evals: int | None = Field(default=None, ge=1)
    max_device_hours: Amount | None = None
    max_hours: Amount | None = None
    max_cost: Amount | None = None
    price_per_device_hour: float = Field(default=0.0, ge=0, le=LARGEST)
    window: str | None = None  # 12h, or a moment
    safety_margin: str = "30m"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.max_cost is not None and self.price_per_device_hour == 0:
            raise ValueError(
                f"max_cost {self.max_cost:g} needs a price_per_device_hour "
                "(--price-per-device-hour) above 0"
            )
        return self


class Evaluation(Section):
    """How one evaluation is carried out."""

    seed: PositiveSeed = 123  # of the evaluations' seeds
    limit_seconds: Amount | None = None  # None: 6 x the calibrated p90
    stall_seconds: Amount | None = None  # None: 120
    assume_eval_seconds: Amount | None = None  # None: calibrate


class Verdict(Section):
    """How the winner is compared with the baseline."""

    confirm_seeds: int | None = Field(default=None, ge=0, le=MOST_SEEDS)
    rung: float | None = Field(default=None, ge=0, le=LARGEST)
    rung_seeds: int | None = Field(default=None, ge=0, le=MOST_SEEDS)


class Backend(Section):
    """What evaluations run on."""

    executor: Literal["ray", "local", "inline"] = "ray"
    launcher: Literal["fork", "exec"] = "fork"
    address: str | None = None  # of a Ray cluster
    device: Literal["auto", "cpu", "cuda"] = "auto"
    workers: int | None = Field(default=None, ge=1)  # None: GPUs, or CPUs
    threads: int | None = Field(default=None, ge=1)
    drain_seconds: float | None = Field(
        default=None, ge=0, le=LARGEST
    )  # None: let what runs finish
    allow_network_fs: bool = False
    max_concurrent: int | None = Field(default=None, ge=1)  # shared by all runs of a host
    slots_dir: str | None = None  # where that is kept

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.slots_dir is not None and self.max_concurrent is None:
            raise ValueError(
                f"slots_dir {self.slots_dir} needs max_concurrent (--max-concurrent): how many "
                "slots there are"
            )
        return self


class Backpressure(Controller, Section):
    """Fewer evaluations at once where more do less together."""


def _each_once(what: str) -> AfterValidator:
    def check(values: list[One]) -> list[One]:
        if twice := {value: True for value in values if values.count(value) > 1}:
            named = ", ".join(map(str, twice))
            raise ValueError(f"expected each {what} once, {named} is there twice")
        return values

    return AfterValidator(check)


class Campaign(Section):
    """Conditions on the same seeds. A file that has this table is a campaign."""

    name: str | None = None  # None: the file's own
    cell: Literal["training", "search"] = "training"
    seeds: Annotated[list[PositiveSeed], _each_once("seed")] = Field(
        default=[1], min_length=1, max_length=MOST_SEEDS
    )  # of evaluations, or of searches
    parallel: bool = True
    max_workers: int | None = Field(default=None, ge=1)
    stagger_seconds: float = Field(default=0.0, ge=0, le=LARGEST)
    controls: bool = True  # the default configuration, and the objective's own controls
    conditions: list[dict[str, Any]] = Field(default=[])


class Track(Section):
    """Which experiment trackers are told of the runs. None of it is part of a run's plan."""

    to: Annotated[list[Tracker], _each_once("tracker")] = Field(default=[])


SECTIONS: dict[str, type[Section]] = {
    "search": Search,
    "budget": Budget,
    "evaluation": Evaluation,
    "verdict": Verdict,
    "backend": Backend,
    "backpressure": Backpressure,
    "track": Track,
    "campaign": Campaign,
}
"""Tables with fixed keys. `[training]` has the objective's, `[thresholds]` those of the rules,
`[factors]` whatever is varied."""


def _a_directory(name: str) -> str:
    """As a shell gives an unset variable, or unprintable, it is nobody's wish."""
    if not name or not name.isprintable():
        raise ValueError("expected a directory's name")
    return name


class Top(Section):
    """Keys above all tables."""

    objective: str = "nanochat"
    runs_dir: Annotated[str, AfterValidator(_a_directory)] = "artifacts/cmaes"
    preset: str | None = None  # of training settings
    profile: str | None = None  # of training settings
