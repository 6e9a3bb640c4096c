"""What may stand in a configuration file, table by table, with the defaults.

What a value means is said where it is used; here is what it may be, and the option that says it.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from budgets.terms import PositiveSeed, SearchMethod, Tier, VariantName
from orchestrator.capacity.terms import Backpressure as Controller
from orchestrator.planning.request import RUNG_FACTOR, RUNG_SEEDS, VERDICT_SEEDS

LARGEST = 1e9
"""Of any number of hours, seconds or money: a larger one is a slip, and no clock counts so far."""

MOST_SEEDS = 1000  # of one point

One = TypeVar("One")

Amount = Annotated[float, Field(gt=0, le=LARGEST)]


@dataclass(frozen=True)
class Flag:
    """How a command line says a key: beside the type of its field."""

    help: str
    metavar: str | None = None
    spelling: str = ""  # "": the key's own name
    old: tuple[str, ...] = ()  # spellings of before, read as well


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
    tier: Annotated[Tier | None, Flag("How much to spend.")] = None  # no search begins without it
    run_id: Annotated[
        str | None, Flag("The run's name; default: tier, objective, search seed.", "ID")
    ] = None
    seed: Annotated[
        PositiveSeed,
        Flag("From which candidates are drawn.", "SEED", "--search-seed", ("--seed",)),
    ] = 1
    method: Annotated[
        SearchMethod | None,
        Flag(
            "How candidates are proposed: guided (default), mirrored-orthogonal or plain.",
            "NAME",
            "--search-method",
        ),
    ] = None
    sigma0: Annotated[
        float | None,
        Flag(
            "Initial step size (sigma), as a share of each knob's range; default: 0.15 (plain: "
            "0.2), or the followed run's.",
            "SHARE",
            old=("--sigma",),
        ),
    ] = Field(default=None, gt=0, le=0.3)
    population: Annotated[
        int | None,
        Flag("Candidates a generation; default: 2 x devices.", "N", old=("--popsize",)),
    ] = None
    generations: Annotated[
        int | None, Flag("Generations at most; default: what the tier pays for.", "N")
    ] = Field(default=None, ge=1)
    seeds_per_candidate: Annotated[
        int | None, Flag("Seeds of each candidate; default: the tier's.", "N")
    ] = Field(default=None, ge=1, le=MOST_SEEDS)
    warm_start: Annotated[
        str | None, Flag("Start where that search stood: id or directory.", "RUN")
    ] = None
    known: Annotated[str | None, Flag("TOML or JSON with knobs to evaluate first.", "FILE")] = None
    follows: Annotated[
        str | None, Flag("The phase 1 whose Go it follows: id or directory.", "RUN")
    ] = Field(default=None, alias="from")
    variant: Annotated[
        VariantName | None, Flag("The same knobs on 3 seeds each, or more knobs on one.")
    ] = None
    proxy: Annotated[
        float | None,
        Flag("Evaluate with this share of the FLOPs while the ranking is shown to agree.", "SHARE"),
    ] = Field(default=None, gt=0, lt=1)


class Budget(Section):
    """What a run may never exceed."""

    max_evals: Annotated[
        int | None,
        Flag("Evaluations at most; a search's comparison on fresh seeds comes on top.", "N"),
    ] = Field(default=None, ge=1)
    max_device_hours: Annotated[
        Amount | None, Flag("Device time at most.", "HOURS", old=("--max-gpu-hours",))
    ] = None
    max_hours: Annotated[
        Amount | None, Flag("Wall clock at most, while a process has it open.", "HOURS")
    ] = None
    max_cost: Annotated[Amount | None, Flag("Money at most.", "MONEY")] = None
    window: Annotated[
        str | None,
        Flag("Be over within 12h, 2d, or by a moment such as 2026-11-27T18:00.", "TIME"),
    ] = None
    safety_margin: Annotated[
        str, Flag("Of --window, kept for the last report and clean-up.", "TIME")
    ] = "30m"
    price_per_device_hour: Annotated[float, Flag("For --max-cost and reports.", "MONEY")] = Field(
        default=0.0, ge=0, le=LARGEST
    )


class Evaluation(Section):
    """How one evaluation is carried out."""

    seed: Annotated[
        PositiveSeed,
        Flag("Stream that the evaluations' seeds are drawn from.", "SEED", "--eval-seed"),
    ] = 123
    limit_seconds: Annotated[
        Amount | None,
        Flag(
            "Kill one that takes longer; default: 6 x the calibrated p90, 60 at least.",
            "SECONDS",
            old=("--timeout-s",),
        ),
    ] = None
    stall_seconds: Annotated[
        Amount | None, Flag("Kill one that is silent for longer; default: 120.", "SECONDS")
    ] = None
    assume_eval_seconds: Annotated[
        Amount | None, Flag("Do not calibrate: an evaluation takes this long.", "SECONDS")
    ] = None


class Verdict(Section):
    """How the winner is compared with the baseline."""

    confirm_seeds: Annotated[
        int | None,
        Flag(
            "Fresh seeds for the comparison of the winner with the baseline; 0: no comparison, "
            f"so no Go; default: {VERDICT_SEEDS}.",
            "N",
        ),
    ] = Field(default=None, ge=0, le=MOST_SEEDS)
    rung: Annotated[
        float | None,
        Flag(
            "Times the FLOPs, on which a gain must persist; 0: not tried; "
            f"default: {RUNG_FACTOR:g}.",
            "TIMES",
        ),
    ] = Field(default=None, ge=0, le=LARGEST)
    rung_seeds: Annotated[int | None, Flag(f"Seeds of the rung; default: {RUNG_SEEDS}.", "N")] = (
        Field(default=None, ge=0, le=MOST_SEEDS)
    )


class Backend(Section):
    """What evaluations run on."""

    executor: Annotated[
        Literal["ray", "local", "inline"],
        Flag("What runs evaluations: ray, local or inline.", "NAME"),
    ] = "ray"
    launcher: Annotated[
        Literal["fork", "exec"], Flag("Fork a warm process, or start a new interpreter.")
    ] = "fork"
    address: Annotated[str | None, Flag("Join this Ray cluster.", "HOST:PORT")] = None
    device: Annotated[Literal["auto", "cpu", "cuda"], Flag("What evaluations run on.")] = "auto"
    workers: Annotated[int | None, Flag("Evaluations at once; default: GPUs, or CPUs.", "N")] = (
        Field(default=None, ge=1)
    )
    threads: Annotated[int | None, Flag("CPU threads of an evaluation.", "N")] = Field(
        default=None, ge=1
    )
    drain_seconds: Annotated[
        float | None,
        Flag("After SIGINT or SIGTERM, kill what still runs; default: let it finish.", "SECONDS"),
    ] = Field(default=None, ge=0, le=LARGEST)
    allow_network_fs: Annotated[bool, Flag("Keep the ledger on a network file system.")] = False
    max_concurrent: Annotated[
        int | None, Flag("Evaluations at once, of all runs that share the slots.", "N")
    ] = Field(default=None, ge=1)
    slots_dir: Annotated[
        str | None, Flag("Where slots are shared; default: by all your runs on this host.", "DIR")
    ] = None

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

    enabled: Annotated[
        bool,
        Flag(
            "Run fewer at once while more would lower the throughput.",
            spelling="--backpressure/--no-backpressure",
        ),
    ] = False


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


Tracker = Literal["tensorboard", "wandb", "mlflow"]
"""An experiment tracker by the name of its library, which is that of its extra too."""


def is_installed(tracker: str) -> bool:
    """Whether its library is; a directory of that name that lies about is none."""
    found = find_spec(tracker)
    return found is not None and found.origin is not None


class Track(Section):
    """Which experiment trackers runs are logged to. None of it is part of a run's plan."""

    to: Annotated[
        list[Tracker],
        _each_once("tracker"),
        Flag(
            "Log to a tracker as well: tensorboard, wandb, mlflow. Repeatable.", "NAME", "--track"
        ),
    ] = Field(default=[])


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

    objective: Annotated[str, Flag("What to tune.", "NAME")] = "nanochat"
    runs_dir: Annotated[
        str, AfterValidator(_a_directory), Flag("Where runs and calibrations live.", "DIR")
    ] = "artifacts/cmaes"
    preset: Annotated[str | None, Flag("Named training settings.", "NAME")] = None
    profile: Annotated[
        str | None, Flag("Training settings cut to the memory: fast, balanced, ...", "NAME")
    ] = None


RULES = {
    "patience_generations": Flag(
        "Stop after so many generations without improvement.", "N", "--patience"
    ),
    "patience_improve": Flag(
        "A smaller share of the baseline's score is no improvement.", "SHARE", "--min-improve"
    ),
}
"""Those of `[thresholds]` that have an option."""
