"""Threats and countermeasures: code in data, hostile text, secrets, forged files."""

import csv
import io
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Status
from budgets.ledger import LEDGER, read
from budgets.plan import Limits
from objectives import registry, secrets
from objectives.analytic import AnalyticObjective
from objectives.api import ObjectiveSpec
from orchestrator.execution import api, processes
from orchestrator.execution.api import Attempt, Outcome
from orchestrator.execution.devices import Engine, make_devices
from orchestrator.execution.inline import InlineExecutor
from orchestrator.execution.local import LocalExecutor
from orchestrator.execution.supervisor import last_line
from orchestrator.look.reports import rebuild
from orchestrator.records.runs import Result
from tests.product.product import Product
from tests.simulation.session import SimulatedEngine

RunSearch = Callable[..., Result]
Command = Callable[..., Any]
REPOSITORY = Path(__file__).parents[1]
NASTY = Path(__file__).parent / "orchestrator/execution/nasty.py"
SPHERE = (
    *("phase1", "--tier", "min", "--objective", "sphere", "--executor", "inline"),
    *("--workers", "1", "--assume-eval-seconds", "1"),
)


def test_what_torch_loads_is_weights_only() -> None:
    """(Ruff refuses what else could turn data into code: pyproject.toml.)"""
    sources = [path.read_text() for path in (REPOSITORY / "objectives").rglob("*.py")]
    loads = re.findall(r"torch\.load\(.*", "\n".join(sources))
    assert loads
    assert [one for one in loads if "weights_only=True)" not in one] == []


# Values reach an evaluation as they are

HOSTILE = [
    "; rm -rf /",
    "$(touch owned)`touch owned`",
    "a\nb\r\nc\n",
    "<script>alert(1)</script>",
    "\x1b[2J\x1b]0;owned\x07",
    "=cmd()|'/C calc'!A0",
    "--option -x",
    "' \" \\ * ? ~ %s {0} ${HOME}",
    "\u202etxt.exe \U0001f600 \u0000",
]


@pytest.fixture
def _nasty_is_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [str(NASTY.parent), str(REPOSITORY), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))


@pytest.mark.usefixtures("_nasty_is_importable")
def test_hostile_values_arrive_as_one_literal_argument(tmp_path: Path) -> None:
    place = tmp_path / "; touch owned #$(touch owned)"
    place.mkdir()
    received = []
    with LocalExecutor(make_devices(1), ("nasty",)) as executor:
        for number, value in enumerate(HOSTILE):
            attempt = attempt_in(place / f"{number} <&> 'x'", {"do": "literal", "value": value})
            executor.submit(attempt)
            while not (done := executor.wait(5.0)):
                pass
            assert done[0].status is Status.OK, done
            received.append((attempt.directory / "received.txt").read_bytes().decode())

    assert received == HOSTILE
    assert not list(tmp_path.rglob("owned"))


def attempt_in(directory: Path, settings: dict[str, Any]) -> Attempt:
    directory.mkdir()
    attempt = Attempt(
        attempt_id=f"{directory.name}-1",
        directory=directory,
        objective=ObjectiveSpec(name="nasty", settings=settings),
        knobs={},
        seed=7,
        limits=Limits(wall_seconds=60.0, grace_seconds=0.3),
        owner=processes.this_owner(),
    )
    api.write_model(directory, attempt)
    return attempt


# What an evaluation says of its end is inert wherever it is shown


class Complaining(InlineExecutor):
    """One evaluation in eight fails, with the next hostile text for its cause."""

    told = 0

    def _evaluate(self, attempt: Attempt) -> Outcome:
        outcome = super()._evaluate(attempt)
        number, Complaining.told = Complaining.told, Complaining.told + 1
        if number % 4 != 3:
            return outcome
        said = {"status": Status.ERROR, "cause": HOSTILE[number // 4 % len(HOSTILE)]}
        return outcome.model_copy(update={**said, "device": HOSTILE[4], "measurement": None})


@pytest.fixture(scope="module")
def complaining(tmp_path_factory: pytest.TempPathFactory, run_search: RunSearch) -> Path:
    """A run whose evaluations failed with every hostile text, its owner overriding the rule."""
    Complaining.told = 0
    root = tmp_path_factory.mktemp("complaining") / "artifacts/cmaes"
    engine = SimulatedEngine("inline", workers=1, make=Complaining)
    search = {"engine": engine, "assumed_seconds": 1.0, "tier": "target"}
    result = run_search(root, **search)
    for time in range(5):
        reason = f"{HOSTILE[3]} for the {time}th time"
        result = run_search(root, **search, overrides=[("crash_rate", reason)])
    assert result.ruling.decision == "pause"
    return result.directory


def steering(text: str) -> set[str]:
    """The characters of `text` that steer terminals or turn text around."""
    return {c for c in text if not c.isprintable() and c != "\n"}


def test_no_file_for_people_steers_a_terminal_or_a_browser(complaining: Path) -> None:
    causes = {r.event.cause for r in read(complaining / LEDGER) if r.event.kind == "settled"}
    rebuild(complaining, datetime.now(UTC))
    texts = {p.name: p.read_text() for p in complaining.rglob("*.md")}

    assert {"; rm -rf /", "<script>alert(1)</script>", "a b c"} <= causes
    assert len(texts) >= 2
    for name, text in texts.items():
        assert not steering(text), name
        assert "<script" not in text.replace(r"\<script", ""), name
    assert r"\<script>" in texts["summary.md"]


def test_every_row_of_the_table_is_one_row_and_no_formula(complaining: Path) -> None:
    text = (complaining / "progress.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(text)))

    assert not steering(text)
    assert not [row for row in rows if None in row or None in row.values()]  # of another length
    said = [row[name] for row in rows for name in ("configuration", "status", "device", "cause")]
    assert not [cell for cell in said if cell.startswith(("=", "+", "-", "@"))]
    causes = {row["cause"] for row in rows}
    assert {"'=cmd()|'/C calc'!A0", "'--option -x"} <= causes


def test_the_live_view_is_not_steered_by_what_evaluations_say(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    Complaining.told = 4 * 4  # so that escapes come first
    monkeypatch.setattr(Engine, "executor", lambda self, slots, objective: Complaining(slots))

    answer = command(*SPHERE)

    assert answer.code == 3
    assert "]0;owned" in answer.out
    assert not steering(answer.out + answer.err)


def test_an_override_with_an_escape_or_a_secret_for_its_reason_is_refused(command: Command) -> None:
    for reason in ("\x1b[2J", "a\nb", "see https://me:pass@host/x", "HF_TOKEN=abc"):
        answer = command(*SPHERE, "--override", "crash_rate", "--reason", reason)
        assert answer.code == 2
        assert "--reason" in answer.err


# Secrets

TOKEN, PASSWORD = "hf_bG9uZ3NlY3JldA", "correcthorse"  # the bait of these tests
ISSUED = "hf_" + 6 * "a1B2"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("GET https://me:correcthorse@host/x?y failed", "GET https://***@host/x?y failed"),
        ("clone https://correcthorse@github.com/a/b", "clone https://***@github.com/a/b"),
        ("two ftp://a:correcthorse@h s3://b:c@k", "two ftp://***@h s3://***@k"),
        ("at://me:correct@horse@host", "at://***@host"),
        ("HF_TOKEN=correcthorse and more", "HF_TOKEN=*** and more"),
        ("{'AWS_SECRET_ACCESS_KEY': 'correcthorse'}", "{'AWS_SECRET_ACCESS_KEY': '***'}"),
        ("export DB_PASS='correcthorse'", "export DB_PASS='***'"),
        ("password: correcthorse, user: me", "password: ***, user: me"),
        ("api_key=correcthorse&x=1", "api_key=***&x=1"),
        ("it is correcthorse.", "it is ***."),
        ("tokens=512 key 3 keyboard: x", "tokens=512 key 3 keyboard: x"),
        ("mail me@host about http://host/a@b", "mail me@host about http://host/a@b"),
        ("KeyError: 'tau_c'", "KeyError: 'tau_c'"),
        (f"401 for {ISSUED}", "401 for ***"),
        ("hf_short, sk-learn and ghost_1", "hf_short, sk-learn and ghost_1"),
    ],
)
def test_secrets_are_left_out_of_text(said: str, kept: str) -> None:
    assert secrets.redacted(said, {"MY_KEY": PASSWORD, "SHORT_KEY": "x", "HOME": "host"}) == kept


@pytest.mark.parametrize(
    ("objective", "setting", "value"),
    [
        ("nanochat", "data", "https://me:pass@host/x"),
        ("sphere", "noise", "s3://token@bucket"),
        ("command", "argv", json.dumps(["train", f"--token={ISSUED}", "{lr}"])),
    ],
)
def test_a_setting_with_a_secret_in_it_is_refused_and_not_repeated(
    objective: str, setting: str, value: str, command: Command, tmp_path: Path
) -> None:
    settings = ("--objective", objective, "--set", f"{setting}={value}")
    answer = command("phase1", "--tier", "min", *settings)

    assert answer.code == 2
    assert f"{objective} setting {setting}" in answer.err
    assert "or holds an access token" in answer.err
    assert not [secret for secret in (value, ISSUED) if secret in answer.err]
    assert not list(tmp_path.iterdir())


class Leaking:
    """Raises what careless code puts into its messages."""

    def __init__(self) -> None:
        self.sphere = registry.load(ObjectiveSpec(name="sphere"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sphere, name)

    def evaluate(self, *_: object) -> Any:
        raise ConnectionError(
            f"401 for https://me:{PASSWORD}@host with {os.environ['HF_TOKEN']} of {os.environ}"
        )


def test_secrets_of_the_environment_are_in_no_record_and_no_file_for_people(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    (tmp_path / ".env").write_text(f"WANDB_API_KEY={TOKEN}\n")
    leaking = Leaking()
    monkeypatch.setattr(AnalyticObjective, "from_settings", lambda *_: leaking)

    answer = command(*SPHERE)

    assert answer.code == 3
    assert "ConnectionError: 401 for https://***@host with *** of" in " ".join(answer.out.split())
    own_words = ("stdout.txt", "stderr.txt")  # what the program printed is the program's
    files = [
        p for p in (tmp_path / "artifacts").rglob("*") if p.is_file() and p.name not in own_words
    ]
    assert len(files) > 10
    for text in (answer.out, answer.err, *(p.read_text(errors="replace") for p in files)):
        assert TOKEN not in text
        assert PASSWORD not in text


def test_the_last_words_of_a_program_are_kept_without_its_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    (tmp_path / "log").write_text(f"first\nno access to x://a:{PASSWORD}@h with {TOKEN}\n\n")
    with (tmp_path / "log").open("rb") as log:
        assert last_line(log.fileno()) == "no access to x://***@h with ***"


@pytest.mark.xdist_group("ray")
@pytest.mark.slow
def test_no_secret_of_the_environment_reaches_rays_logs(product: Product) -> None:
    short = Path(tempfile.mkdtemp(prefix="s", dir="/tmp"))  # sockets need short paths
    product.write(".env", f"HF_TOKEN={TOKEN}\n")
    product.variables |= {"RAY_TMPDIR": str(short), "HF_TOKEN": TOKEN, "MY_PASSWORD": PASSWORD}
    try:
        product(" ".join(SPHERE).replace("inline", "ray"))
        paths = [*short.rglob("*"), *(product.folder / "artifacts").rglob("*")]
        written = {path: path.read_bytes() for path in paths if path.is_file()}
    finally:
        shutil.rmtree(short)
    assert [path for path in written if path.name.startswith("raylet")], "Ray's logs are elsewhere"
    bait = TOKEN.encode(), PASSWORD.encode()
    assert [path for path, text in written.items() if any(one in text for one in bait)] == []


# Whose files they are


@pytest.mark.parametrize("kind", ["inline", "local"])
def test_what_a_run_writes_is_its_owners(kind: Any, run_search: RunSearch, tmp_path: Path) -> None:
    mask = os.umask(0o000)
    try:
        result = run_search(tmp_path, engine=Engine(kind=kind, workers=1), assumed_seconds=1.0)
    finally:
        os.umask(mask)

    files = [p for p in result.directory.rglob("*") if p.is_file()]
    assert len(files) > 16 * 5
    assert {p.name for p in files if stat.S_IMODE(p.stat().st_mode) != 0o600} == set()
    for directory in (result.directory, result.directory / "reports"):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


# Forged files

TOLD = {"attempt_id": "ID", "status": "ok", "measurement": {"score": 0.5}}


@pytest.mark.parametrize(
    "forged",
    [
        b"[" * 100_000,
        b"\x00\xff",
        {"attempt_id": "other"},
        {"status": "lost", "measurement": None},
        {"called_at": float("nan")},
        *(
            {"measurement": {"score": 1.0, name: value}}
            for name, value in [
                ("score", "1"), ("steps", 10**400), ("steps", -1), ("tokens", 2**63),
                ("train_seconds", float("nan")), ("metrics", {"a": "b"}), ("owned", 1),
            ]
        ),
    ],
    ids=lambda value: str(value)[-60:],
)  # fmt: skip
def test_a_forged_measurement_is_not_believed(forged: Any, tmp_path: Path) -> None:
    attempt = attempt_in(tmp_path / "mine", {})

    def is_believed(text: bytes) -> bool:
        own = text.replace(b"ID", attempt.attempt_id.encode())
        (attempt.directory / api.MEASUREMENT).write_bytes(own)
        return api.read_own(attempt, api.Report) is not None

    assert is_believed(json.dumps(TOLD).encode())
    assert not is_believed(
        forged if isinstance(forged, bytes) else json.dumps(TOLD | forged).encode()
    )


def test_a_summary_that_ended_before_it_began_is_not_believed(tmp_path: Path) -> None:
    attempt = attempt_in(tmp_path / "mine", {})
    for seconds, is_believed in ((0.1, True), (-1.0, False)):
        told = {**TOLD, "attempt_id": attempt.attempt_id, "seconds": seconds}
        (attempt.directory / api.SUMMARY).write_text(json.dumps(told))
        assert (api.read_own(attempt, Outcome) is not None) == is_believed
