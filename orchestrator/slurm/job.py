"""One run as a job, and all of them together: what the scripts are made from."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

from budgets.words import duration
from orchestrator.slurm.options import NAME, SlurmOptions, clock_text

MARGIN = 1.25
"""A time limit is the estimate (90 of 100 such runs are quicker) times this, and what follows."""

START_SECONDS = 600
"""For imports, for a cluster of Ray to come up, for the last report."""

ROUND_SECONDS = 300


LEAD_SECONDS, MOST_LEAD_SECONDS = 300, 65535
"""The least, where nobody says, and the most that SLURM can count."""

REQUEUES = 10
"""Of a search. A single evaluation that a limit cut short would begin anew, and meet it again."""


@dataclass(frozen=True)
class Job:
    """One run: its configuration, and what it is in the matrix that it belongs to."""

    name: str  # also of its directory
    config_text: str  # TOML, resolved
    condition: str
    seed: int | None = None
    control: bool = False
    levels: Mapping[str, str] = field(default_factory=dict)
    slots: int = 1  # evaluations at once, on all nodes together
    threads: int = 1  # of each
    seconds: float | None = None  # with 90 % probability it takes no longer; None: no estimate
    source: str = ""  # where that is known from
    device_seconds: float | None = None  # expected, of all its slots
    eval_seconds: float | None = None  # with 90 % probability an evaluation takes no longer
    is_one_evaluation: bool = False

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(
                f"run {self.name!r}: expected a name of 1 to 100 letters, digits and . _ + = , @ "
                "-, beginning with a letter or digit: it becomes a directory, and a job's name"
            )


def lead_seconds(options: SlurmOptions, job: Job) -> int:
    """Seconds before the time limit from which no evaluation starts: what runs may finish."""
    if options.lead_seconds is not None:
        return options.lead_seconds
    if job.eval_seconds is None or job.is_one_evaluation:
        return LEAD_SECONDS
    wanted = ceil(job.eval_seconds * MARGIN / 60) * 60 + 60
    return min(max(LEAD_SECONDS, wanted), MOST_LEAD_SECONDS)


@dataclass(frozen=True)
class Export:
    """Runs to be submitted together. Raises ValueError on what no cluster could be asked for."""

    name: str
    directory: Path  # absolute, where they will lie
    work_directory: Path  # absolute, where relative paths of the configuration begin
    python: str
    jobs: tuple[Job, ...]
    options: SlurmOptions
    factors: tuple[str, ...] = ()
    objective: str = ""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"campaign.name: expected a plain name, got {self.name!r}")
        for path in (self.directory, self.work_directory, Path(self.python)):
            if not path.is_absolute() or not str(path).isprintable():
                raise ValueError(f"expected an absolute, printable path, got {str(path)!r}")
        if not self.jobs:
            raise ValueError(f"{self.name}: there are no runs to export")
        twice = [n for n, count in Counter(j.name.lower() for j in self.jobs).items() if count > 1]
        if twice:
            raise ValueError(f"two runs would lie in the same directory: {', '.join(twice)}")
        for job in self.jobs:
            self._check_share(job)

    def _check_share(self, job: Job) -> None:
        nodes, cpus = self.options.nodes, self.options.cpus_per_task
        if job.slots % nodes:
            raise ValueError(
                f"{job.name}: {job.slots} evaluations at once cannot be spread over {nodes} nodes: "
                "give backend.workers as a multiple of slurm.nodes"
            )
        wanted = job.slots // nodes * job.threads
        if cpus is not None and cpus < wanted:
            raise ValueError(
                f"{job.name}: slurm.cpus_per_task: {job.slots // nodes} evaluations of "
                f"{job.threads} threads on a node need {wanted} CPUs, got {cpus}"
            )
        self.time_seconds(job)

    @property
    def jobs_in_words(self) -> str:
        return "1 job" if len(self.jobs) == 1 else f"{len(self.jobs)} jobs"

    @property
    def uses_cluster(self) -> bool:
        """Whether a job takes several machines, and so a Ray over all of them."""
        return self.options.nodes > 1

    def run_directory(self, job: Job) -> Path:
        return self.directory / job.name

    def cpus(self, job: Job) -> int:
        """Of each node."""
        return self.options.cpus_per_task or job.slots // self.options.nodes * job.threads

    def gpus(self, job: Job) -> int:
        """Of each node."""
        return (self.options.gpus or 0) * (job.slots // self.options.nodes)

    def time_seconds(self, job: Job) -> int:
        """The job's time limit: the one that is given, or from the estimate.

        Raises ValueError without either, and where nothing could run before it begins to end.
        """
        lead = lead_seconds(self.options, job)
        given = self.options.time_seconds
        if given is None and job.seconds is None:
            raise ValueError(
                f"{job.name}: nobody has measured how long it takes, so slurm.time must say: give "
                'a limit such as time = "4h" in [slurm], or calibrate first'
            )
        if given is None:
            assert job.seconds is not None
            wanted = job.seconds * MARGIN + START_SECONDS + lead
            return int(-(-wanted // ROUND_SECONDS)) * ROUND_SECONDS
        if given <= lead + 60:  # SLURM's own clock for signals is a minute coarse
            raise ValueError(
                f"slurm.time: {clock_text(given)} leaves no time to run: {lead} s before the limit "
                "(slurm.lead_seconds, and a minute that SLURM may be early) no evaluation starts"
            )
        if job.eval_seconds is not None and job.eval_seconds > given - 60:
            raise ValueError(
                f"slurm.time: {clock_text(given)} is less than one evaluation of {job.name} takes, "
                f"{duration(job.eval_seconds)} ({job.source}): it would never finish"
            )
        return given

    def requeues(self, job: Job) -> int:
        """How often the job may go back into the queue by itself."""
        if self.options.max_requeues is not None:
            return self.options.max_requeues
        return 0 if job.is_one_evaluation else REQUEUES

    def starts(self, job: Job) -> int | None:
        """In how many parts the time limit cuts the run; None without an estimate."""
        if job.seconds is None:
            return None
        usable = self.time_seconds(job) - lead_seconds(self.options, job)
        return ceil(job.seconds / usable)
