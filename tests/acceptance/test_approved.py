"""Every page and every output as it was approved: a file for each in tests/approved.

A change of words or of a number shows here as a difference; `approve.COMMAND` approves it.
"""

import re
import shlex
from collections.abc import Iterator

import pytest

from tests.acceptance import approve
from tests.acceptance.approve import Approved, keys_of, masked, screen, words_of
from tests.acceptance.product import REPOSITORY, Product

STORED = sorted(path.name for path in (REPOSITORY / "tests/golden/runs").iterdir())
"""Runs that were recorded once. Every command may look at them."""

PAGES = {
    "status": ("status RUN", "*"),
    "report": ("report RUN", "*"),
    "markdown": ("report RUN --md --out -", "*"),
    "html": ("report RUN --html --out -", "go statuses campaign"),
    "best": ("best RUN", "*"),
    "verify": ("verify --accept-drift RUN", "go interrupted phase2 campaign proxy_check"),
    "analyze": ("analyze --accept-drift RUN", "go no_go_noise"),
    "rules": ("explain RUN", "statuses"),
}
"""Of each page its command, and the stored runs that it is made of (*: all)."""

PAGES_OF_RUNS = [
    f"{page}/{run}"
    for page, (_, runs) in PAGES.items()
    for run in (STORED if runs == "*" else runs.split())
]
PAGES_OF_SEVERAL = {
    "best-in-other-forms": ["best go_at_the_end --toml", "best go_at_the_end --flags"],
    "compare": ["compare go go_fades", "compare no_go_noise smoke"],
    "history": ["history --write"],
    "ledger": ["ledger head go", "ledger export statuses"],
    "errors": [
        "phase1 --tier huge",
        "phase1 --tier min --objective spere",
        "phase1 --tier min --objective sphere --set dimensio=3",
        "phase1 --tier min --objective python:missing:f",
        "phase1 --tier min --objective sphere --max-hours -1",
        "phase1 --tier min --objective sphere --window soon",
        "phase2 --tier min --variant robust --from no_go_noise --executor inline",
        "run missing.toml",
        "status goo",
        "analyze campaign",
        "compare go",
        "amend go --max-device-hours 1",
        "init --template campain",
    ],
}
SPHERE = "--objective sphere --set dimension=2 --set noise=0.01"
MACHINE = "--workers 2 --threads 1 --device cpu"
INLINE = f"{SPHERE} --executor inline {MACHINE}"
ASSUMED = f"{SPHERE} {MACHINE} --assume-eval-seconds 60"
TEMPLATES = [
    "smoke",
    "phase1",
    "phase2",
    "campaign",
    "factorial",
    "nanochat",
    "command",
    "function",
]
PAGES_OF_PLANS = {
    "rules": ["explain"],
    "templates": [f"init --template {name}" for name in TEMPLATES],
    "configuration": ["init --template command --out search.toml", "explain search.toml"],
    "space": ["space show", "dry-run --objective sphere"],
    "plan-uncalibrated": [f"plan phase1 {INLINE}"],
    "plan-assumed": [f"plan phase1 {ASSUMED} --max-device-hours 2 --price-per-device-hour 3"],
    "plan-that-fits": [
        f"plan phase1 --tier target --fit --window {w} {ASSUMED}" for w in ("8h", "1h")
    ],
    "plan-campaign": ["plan campaign rates.toml"],
    "slurm": ["export slurm rates.toml", "export slurm rates.toml --out jobs --write"],
}
PAGES_OF_NEW_RUNS = {
    "calibrate": [f"calibrate {INLINE}"],
    "search": [f"phase1 --tier min --generations 1 {INLINE} --assume-eval-seconds 1"],
    "proxy-check": [f"proxy check {INLINE} --candidates 8"],
    "campaign": ["run rates.toml"],
}
KEYS = {
    "status": ["go", "interrupted", "statuses", "campaign", "space_check"],
    "report": ["go", "statuses", "campaign", "space_check", "proxy_check"],
    "best": ["go", "go_at_the_end", "no_go_noise", "smoke"],
    "compare go": ["phase2"],
    "analyze --accept-drift": ["go"],
    "explain": ["statuses"],
    "verify --accept-drift": ["go"],
    "history": [""],
    f"plan phase1 {ASSUMED} --window 8h": ["", "--fit"],
}
"""Commands with the stored runs of which `--json` is looked at."""

CAMPAIGN = """
objective = "sphere"
[training]
noise = 0.01
[campaign]
seeds = [1, 2]
[[campaign.conditions]]
name = "two"
training.dimension = 2
[[campaign.conditions]]
name = "three"
training.dimension = 3
[backend]
executor = "inline"
workers = 2
threads = 1
device = "cpu"
[slurm]
time = "1h"
"""


@pytest.fixture
def approved(request: pytest.FixtureRequest) -> Approved:
    return Approved(rewrite=request.config.getoption("--approve"))


@pytest.mark.parametrize("name", PAGES_OF_RUNS)
def test_a_page_of_a_stored_run(looker: Product, approved: Approved, name: str) -> None:
    page, run = name.split("/")
    done = looker(*PAGES[page][0].replace("RUN", run).split(), code=None)
    text = words_of(done.out) if page == "html" else screen(done)
    approved(name, masked(text, approve.STORED))


@pytest.mark.parametrize("name", PAGES_OF_SEVERAL)
def test_a_page_of_several_stored_runs(looker: Product, approved: Approved, name: str) -> None:
    dones = [looker(*command.split(), code=None) for command in PAGES_OF_SEVERAL[name]]
    approved(name, masked(screen(*dones), approve.STORED))


@pytest.mark.parametrize("name", [*PAGES_OF_PLANS, *PAGES_OF_NEW_RUNS])
def test_a_page_without_a_stored_run(product: Product, approved: Approved, name: str) -> None:
    product.write("rates.toml", CAMPAIGN)
    product.variables["TZ"] = "UTC"
    commands = {**PAGES_OF_PLANS, **PAGES_OF_NEW_RUNS}[name]
    text = screen(*(product(*shlex.split(command), code=None) for command in commands))
    for file in sorted([*product.folder.glob("jobs/*.*"), *product.folder.glob("jobs/two_s1/*.*")]):
        text += f"\n=== {file.relative_to(product.folder)}\n{file.read_text()}"
    approved(name, masked(text, approve.HERE if name in PAGES_OF_PLANS else approve.JUST_MADE))


def helps(user: Product, *words: str) -> Iterator[str]:
    """`--help` of a command and of every command below it."""
    done = user(*words, "--help")
    yield screen(done)
    for command in re.findall(r"^│ ([a-z][a-z0-9-]*) ", done.out, re.MULTILINE):
        yield from helps(user, *words, command)


def test_the_help_of_every_command(looker: Product, approved: Approved) -> None:
    approved("help", masked("\n".join(helps(looker)), approve.STORED))


def test_the_keys_of_every_json(looker: Product, approved: Approved) -> None:
    lines = []
    for command, runs in KEYS.items():
        keys = [keys_of(looker.json(*command.split(), *run.split(), code=None)) for run in runs]
        lines += [f"$ orchestrator {command} --json", *sorted(set().union(*keys)), ""]
    approved("keys", "\n".join(lines))


def test_every_approved_file_has_its_page(approved: Approved) -> None:
    pages = [*PAGES_OF_RUNS, *PAGES_OF_SEVERAL, *PAGES_OF_PLANS, *PAGES_OF_NEW_RUNS]
    approved.only([*pages, "help", "keys"])
