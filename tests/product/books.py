"""Independent accounts of a run, from the raw lines of its ledger.

The only place of the suite that knows the ledger's format. It uses no code of the product.
"""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import pytest

LEDGER = "ledger.jsonl"
HEAD = "head.json"
SEARCH = "search"
"""Name of the batch of the search's evaluations; other batches are comparisons."""
FAILED = {"nan", "oom", "timeout", "error"}

Key = tuple[str, int, int, int]
"""An evaluation: batch, number (of the generation), candidate, seed."""


class Attempt(NamedTuple):
    key: Key
    number: int
    reserved_ms: int
    status: str | None = None  # None: still open
    score: float | None = None
    charged_ms: int = 0
    cause: str = ""
    is_final: bool = False  # otherwise the evaluation runs again


class Verdict(NamedTuple):
    grade: str  # go_persists, go or no_go
    reason: str | None  # of a No-Go
    arm: str
    point: tuple[float, ...] | None
    gain: float | None
    lower: float | None


class Fired(NamedTuple):
    rule: str
    generation: int
    decision: str
    observed: float
    limit: float


class Use(NamedTuple):
    """What is spent and reserved at most after a reservation."""

    record: int
    evaluations: int  # of the search
    device_ms: int
    open_ms: int
    end_ms: int  # of the latest attempt, since 1970
    limits: dict[str, float]  # the caps at that time


class Books:
    """The contents of a ledger, added up without the product."""

    def __init__(self, lines: Sequence[dict[str, Any]]) -> None:
        self.lines = lines
        planned, decided = self.events("planned"), self.events("decided")
        self.plan: dict[str, Any] = planned[0]["plan"] if planned else {}
        calibration = self.plan.get("calibration") or {}
        self.paid_before_ms = calibration.get("charged_ms", 0)
        self.open_before_ms = [calibration.get("open_ms", 0)]
        self.baseline = [one["score"] for one in calibration.get("samples", [])]
        self.sessions = len(self.events("opened"))
        self.is_concluded = bool(self.events("concluded"))
        self.verdict = _verdict(decided[-1]) if decided else None
        self.overridden = [
            (event["rule"], event["generation"], event["reason"])
            for event in self.events("overridden")
        ]
        fired = self.events("fired")
        self.fired = [Fired(*(event[name] for name in Fired._fields)) for event in fired]

    @classmethod
    def of(cls, run: Path) -> "Books":
        data = (run / LEDGER).read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        return cls([json.loads(line) for line in whole.splitlines()])

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [line["event"] for line in self.lines if line["event"]["kind"] == kind]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Resolved population, generations and seeds per candidate."""
        resolved = self.plan["resolved"]
        return resolved["population"], resolved["generations"], resolved["seeds_per_candidate"]

    @cached_property
    def attempts(self) -> list[Attempt]:
        """All attempts, in the order of their reservations."""
        found: dict[tuple[Key, int], Attempt] = {}
        for event in (line["event"] for line in self.lines):
            if event["kind"] == "reserved":
                place = _key(event), event["attempt"]
                assert place not in found, f"{place} is reserved twice"
                found[place] = Attempt(*place, event["reserve_ms"])
            elif event["kind"] == "settled":
                place = _key(event), event["attempt"]
                assert found[place].status is None, f"{place} is settled twice"
                result = {name: event[name] for name in Attempt._fields[3:-1]}
                final = not event["retry"] and event["status"] not in ("lost", "cancelled")
                found[place] = found[place]._replace(**result, is_final=final)
        return list(found.values())

    @property
    def open_attempts(self) -> list[Attempt]:
        return [attempt for attempt in self.attempts if attempt.status is None]

    @cached_property
    def results(self) -> dict[Key, Attempt]:
        """The final attempt of each evaluation that has one; checks that none has two."""
        final = [attempt for attempt in self.attempts if attempt.is_final]
        assert len({attempt.key for attempt in final}) == len(final), "an evaluation is paid twice"
        return {attempt.key: attempt for attempt in final}

    @property
    def searched(self) -> list[Attempt]:
        """The results of the search, without comparisons."""
        return [attempt for key, attempt in sorted(self.results.items()) if key[0] == SEARCH]

    @property
    def statuses(self) -> dict[str, int]:
        """The number of attempts by status."""
        return Counter(sorted(one.status for one in self.attempts if one.status is not None))

    @property
    def device_ms(self) -> int:
        return sum(attempt.charged_ms for attempt in self.attempts)

    @property
    def generations(self) -> list[dict[str, Any]]:
        """Points, seeds and the search's digest of each generation."""
        told = {event["generation"]: event["digest"] for event in self.events("generation_told")}
        return [
            {
                "points": [one["point"] for one in asked["configurations"]],
                "seeds": asked["seeds"][0],
                "digest": told.get(asked["generation"]),
            }
            for asked in self.events("asked")
            if asked["comparison"] is None
        ]

    @property
    def comparisons(self) -> dict[str, dict[str, Any]]:
        """By comparison and configuration: point, changed settings, seeds."""
        return {
            f"{asked['comparison']} 0": {
                arm["name"]: {"point": arm["point"], "settings": arm["settings"], "seeds": seeds}
                for arm, seeds in zip(asked["configurations"], asked["seeds"], strict=True)
            }
            for asked in self.events("asked")
            if asked["comparison"] is not None
        }

    def scores(self, comparison: str, arm: str) -> dict[int, float | None]:
        """Return the raw scores of a comparison's configuration, by seed."""
        name, number = comparison.rsplit(" ", 1)
        place = name, int(number), list(self.comparisons[comparison]).index(arm)
        return {key[3]: one.score for key, one in self.results.items() if key[:3] == place}

    @property
    def candidate_means(self) -> dict[tuple[int, int], float]:
        """The mean score of each candidate with a score on every seed."""
        scores: dict[tuple[int, int], list[float]] = {}
        for one in self.searched:
            scores.setdefault(one.key[1:3], []).extend([] if one.score is None else [one.score])
        seeds = self.shape[2]
        return {place: sum(own) / seeds for place, own in scores.items() if len(own) == seeds}

    @property
    def essence(self) -> dict[str, Any]:
        """What the run found, without times and interruptions."""
        results = sorted(self.results.items())
        return {
            "generations": self.generations,
            "comparisons": self.comparisons,
            "results": [[*key, attempt.status, attempt.score] for key, attempt in results],
            "verdict": self.verdict and self.verdict._asdict(),
            "concluded": self.is_concluded,
        }

    @property
    def kept(self) -> dict[str, Any]:
        """What is stored beside a golden ledger: the essence, the cost, and fired rules."""
        return {
            **self.essence,
            "statuses": self.statuses,
            "attempts": len(self.attempts),
            "open": len(self.open_attempts),
            "device_ms": self.device_ms,
            "fired": [fired._asdict() for fired in self.fired],
            "overridden": [rule for rule, _, _ in self.overridden],
            "caps": [self.plan["caps"], *(event["caps"] for event in self.events("amended"))],
        }

    @property
    def open_ms(self) -> int:
        """How long the run was open, up to the last known moment of each session."""
        return self._time[1]

    @property
    def uses(self) -> list[Use]:
        """What was used at most after each reservation."""
        return self._time[0]

    @cached_property
    def _time(self) -> tuple[list[Use], int]:
        limits, uses = self._limits(self.plan["caps"]), []
        held: dict[tuple[Key, int], tuple[int, int, int]] = {}  # session, since, reserved
        device_ms, sessions = self.paid_before_ms, list(self.open_before_ms)
        begun: set[Key] = set()
        now = opened = 0
        for line in self.lines:
            event, elapsed, at = line["event"], line["elapsed_ms"], _milliseconds(line["at"])
            if event["kind"] == "opened":
                sessions.append(0)
                opened = max(now, at)
            elif event["kind"] == "amended":
                limits = self._limits(event["caps"])
            if event["kind"] != "planned":
                sessions[-1] = max(sessions[-1], elapsed)
            now = max(now, at, opened + elapsed)
            if event["kind"] == "settled":
                session, since, reserved = held.pop((_key(event), event["attempt"]))
                device_ms += event["charged_ms"]
                if session < len(sessions) - 1:  # it was open until that attempt's end
                    proven = since + min(event["charged_ms"], reserved)
                    sessions[session] = max(sessions[session], proven)
            elif event["kind"] == "reserved":
                reserved, key = event["reserve_ms"], _key(event)
                held[key, event["attempt"]] = len(sessions) - 1, sessions[-1], reserved
                begun |= {key} if key[0] == SEARCH else set()
                ends = list(sessions)
                for session, since, worst in held.values():
                    ends[session] = max(ends[session], since + worst)
                most = len(begun), device_ms + sum(one[2] for one in held.values()), sum(ends)
                uses.append(Use(line["seq"], *most, now + reserved, limits))
        return uses, sum(sessions)

    def _limits(self, caps: dict[str, Any]) -> dict[str, float]:
        hours = [inf if caps[name] is None else caps[name] for name in ("device_hours", "hours")]
        if caps["cost"] is not None:
            hours[0] = min(hours[0], caps["cost"] / self.plan["price_per_device_hour"])
        limits = {"device_ms": hours[0] * 3_600_000, "open_ms": hours[1] * 3_600_000}
        limits["evaluations"] = inf if caps["evaluations"] is None else caps["evaluations"]
        limits["end_ms"] = inf if caps["window"] is None else self.deadline_ms(caps["window"])
        return limits

    def check(self, document: dict[str, Any]) -> None:
        """Check that the balances in the run's JSON document equal these accounts."""
        balances = {one["currency"]: one for one in document["balances"]}
        for one in balances.values():
            left = None if one["cap"] is None else one["cap"] - one["spent"] - one["reserved"]
            assert one["free"] == (left and pytest.approx(max(0, left), abs=1e-9)), one
        device_hours = (self.paid_before_ms + self.device_ms) / 3_600_000
        expected = {
            "evaluations": len(self.searched),
            "comparison evaluations": len(self.results) - len(self.searched),
            "device time": device_hours,
            "wall clock": self.open_ms / 3_600_000,
            "money": device_hours * self.plan["price_per_device_hour"],
        }
        spent = {currency: one["spent"] for currency, one in balances.items()}
        assert spent == pytest.approx({name: expected[name] for name in spent}, rel=1e-9)
        held = sum(attempt.reserved_ms for attempt in self.open_attempts)
        assert balances["device time"]["reserved"] == pytest.approx(held / 3_600_000, rel=1e-9)

    def overshoots(self) -> list[str]:
        """Return every reservation that did not fit under a cap when it was made."""
        return [
            f"record {use.record}: {name} {getattr(use, name)} of {limit}"
            for use in self.uses
            for name, limit in use.limits.items()
            if getattr(use, name) > limit
        ]

    def deadline_ms(self, window: dict[str, Any]) -> float:
        """Return the deadline of the last evaluation, in milliseconds since 1970."""
        began = _milliseconds(self.lines[0]["at"]) - self.open_before_ms[0]
        until = window["until"] and _milliseconds(window["until"])
        end = until or began + window["hours"] * 3_600_000
        return float(end - 1000 * window["margin_seconds"])


def _milliseconds(at: str) -> int:
    """Return the milliseconds since 1970."""
    return round(1000 * datetime.fromisoformat(at).timestamp())


def _verdict(event: dict[str, Any]) -> Verdict:
    point = None if event["point"] is None else tuple(event["point"])
    numbers = event["gain"], event["lower"]
    return Verdict(event["grade"], event["no_go"], event["configuration"], point, *numbers)


def _key(event: dict[str, Any]) -> Key:
    batch = SEARCH if event["comparison"] is None else event["comparison"]
    return batch, event["generation"], event["candidate"], event["seed"]


def sealed(lines: Iterable[dict[str, Any]]) -> bytes:
    """Return a ledger of these lines with a valid hash chain."""
    previous, data = "", b""
    for line in lines:
        unsealed = {name: value for name, value in line.items() if name != "h"}
        body = json.dumps(unsealed, separators=(",", ":"), ensure_ascii=False).encode()[:-1]
        previous = hashlib.sha256(previous.encode() + body).hexdigest()[:32]
        data += body + b',"h":"' + previous.encode() + b'"}\n'
    return data


def records(run: Path) -> int:
    """Return the number of complete records of a run's ledger; 0 if there is none."""
    ledger = run / LEDGER
    return ledger.read_bytes().count(b"\n") if ledger.exists() else 0


def cut(run: Path, keep: int, *, half_of_the_next: bool = False) -> None:
    """Cut a ledger after `keep` records, as a kill does, and remove the derived files."""
    lines = (run / LEDGER).read_bytes().splitlines(keepends=True)
    rest = lines[keep][: len(lines[keep]) // 2] if half_of_the_next else b""
    (run / LEDGER).write_bytes(b"".join(lines[:keep]) + rest)
    for path in run.iterdir():  # files derived from the removed records
        if path.name not in (LEDGER, "eval"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
