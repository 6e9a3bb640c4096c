"""Every page and every output as it was approved: a file for each in tests/approved.

A change of words or of a number shows here as a difference, and one command approves it:
`scripts/test tests/acceptance/test_approved.py --approve`. What depends on the time or the machine
is masked (`tests/product/approved.py`).
"""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.product.approved import HERE, JUST_MADE, STORED, Approve, lines_of, screen
from tests.product.product import REPOSITORY, Done, Product

ALL = " ".join(sorted(path.name for path in (REPOSITORY / "tests/golden/runs").iterdir()))
STORED_PAGES = {
    f"{page}/{run}": [command.replace("RUN", run)]
    for page, command, runs in (
        ("status", "status RUN", ALL),
        ("report", "report RUN", "go statuses campaign calibration interrupted"),
        ("markdown", "report RUN --out -", ALL),
        ("best", "best RUN", ALL),
        ("verify", "verify RUN", "go interrupted phase2 campaign proxy_check"),
    )
    for run in runs.split()
}
STORED_PAGES |= {
    "best-in-other-forms": ["best go_at_the_end --as toml", "best go_at_the_end --as flags"],
    "compare": ["report go go_fades", "report no_go_noise smoke"],
    "table": ["export table statuses"],
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
        "amend go --max-device-hours 1",
        "init --template campain",
    ],
}
TEMPLATES = "smoke phase1 phase2 campaign factorial"
SPHERE = "--objective sphere --set dimension=2 --set noise=0.01"
MACHINE = "--workers 2 --set backend.threads=1 --device cpu"
INLINE = f"{SPHERE} --executor inline {MACHINE}"
ASSUMED = f"{SPHERE} {MACHINE} --assume-eval-seconds 60"
PAGES_OF_NEW_RUNS = {
    "calibrate": [f"calibrate {INLINE}"],
    "search": [f"phase1 --tier min --set search.generations=1 {INLINE} --assume-eval-seconds 1"],
    "proxy-check": [f"check proxy {INLINE} --candidates 8"],
    "campaign": ["run rates.toml"],
}
FIT = "plan --tier target --fit --window"
HTML_PAGES = ["go", "statuses", "campaign"]
NEW_PAGES = PAGES_OF_NEW_RUNS | {
    "templates": [f"init --template {name}" for name in TEMPLATES.split()],
    "configuration": ["init --template phase1 --out search.toml", "explain search.toml"],
    "space": ["explain --set backend.device=cpu"],
    "plan-uncalibrated": [f"plan {INLINE}"],
    "plan-assumed": [
        f"plan {ASSUMED} --verbose --max-device-hours 2 --set budget.price_per_device_hour=3"
    ],
    "plan-that-fits": [f"{FIT} 8h {ASSUMED}", f"{FIT} 1h {ASSUMED}"],
    "plan-campaign": ["plan rates.toml"],
    "slurm": ["export slurm rates.toml", "export slurm rates.toml --out jobs --write"],
}
KEYS = {  # commands with the stored runs of which `--json` is looked at
    "status": ["go", "interrupted", "statuses", "campaign", "space_check"],
    "report": ["go", "statuses", "campaign", "space_check", "proxy_check"],
    "best": ["go_at_the_end", "no_go_noise", "smoke"],
    "report go": ["phase2"],
    "verify": ["go"],
    f"plan {ASSUMED} --window 8h": ["", "--fit"],
}
CAMPAIGN = """
objective = "sphere"
training.noise = 0.01
backend = { executor = "inline", workers = 2, threads = 1, device = "cpu" }
slurm.time = "1h"
[campaign]
seeds = [1, 2]
conditions = [{ name = "two", training.dimension = 2 }, { name = "three", training.dimension = 3 }]
"""


@pytest.mark.parametrize("name", STORED_PAGES)
def test_a_page_of_stored_runs(looker: Product, approved: Approve, name: str) -> None:
    approved(name, screen(*(looker(line, code=None) for line in STORED_PAGES[name])), STORED)


@pytest.mark.parametrize("run", HTML_PAGES)
def test_a_page_in_a_browser(page_of: Callable[[str], str], approved: Approve, run: str) -> None:
    approved(f"html/{run}", lines_of(page_of(run)), STORED)


@pytest.mark.parametrize("name", NEW_PAGES)
def test_a_page_without_a_stored_run(product: Product, approved: Approve, name: str) -> None:
    product.write("rates.toml", CAMPAIGN)
    text = screen(*(product(line, code=None, TZ="UTC") for line in NEW_PAGES[name]))
    for file in sorted([*product.folder.glob("jobs/*.*"), *product.folder.glob("jobs/two_s1/*.*")]):
        text += f"\n=== {file.relative_to(product.folder)}\n{file.read_text()}"
    approved(name, text, JUST_MADE if name in PAGES_OF_NEW_RUNS else HERE)


def test_the_help_of_every_command(looker: Product, approved: Approve) -> None:
    """Of a command, then of every command below it."""
    dones: list[Done] = []
    commands = [""]
    while commands:
        above = commands.pop(0)
        dones.append(looker(f"{above} --help"))
        below = re.findall(r"^│ ([a-z][a-z0-9-]*) ", dones[-1].out, re.MULTILINE)
        commands = [f"{above} {command}" for command in below] + commands
    approved("help", screen(*dones), STORED)


def keys_of(value: Any, place: str = "") -> set[str]:
    """Every key of a JSON document, and of what type its values are."""
    if isinstance(value, dict):
        return set().union(*(keys_of(inner, f"{place}.{key}") for key, inner in value.items()))
    if isinstance(value, list):
        return set().union({f"{place}[]"}, *(keys_of(inner, f"{place}[]") for inner in value))
    types = {bool: "boolean", int: "number", float: "number", str: "string"}
    return {f"{place}: {types.get(type(value), 'null')}"}


def test_the_keys_of_every_json(looker: Product, approved: Approve) -> None:
    lines = []
    for command, runs in KEYS.items():
        keys = [keys_of(looker.json(f"{command} {run}", code=None)) for run in runs]
        lines += [f"$ orchestrator {command} --json", *sorted(set().union(*keys)), ""]
    approved("keys", "\n".join(lines), [])


def test_every_approved_file_has_its_page(request: pytest.FixtureRequest) -> None:
    pages = [*STORED_PAGES, *NEW_PAGES, "help", "keys", *(f"html/{run}" for run in HTML_PAGES)]
    place = REPOSITORY / "tests/approved"
    others = sorted({*place.rglob("*.txt")} - {place / f"{name}.txt" for name in pages})
    for file in others if request.config.getoption("--approve") else []:
        file.unlink()
    assert not any(file.exists() for file in others), (
        f"no test makes {others}: --approve deletes them"
    )
