"""The test's own books of a run, from the raw lines of its ledger.

The one place of the suite that knows how a ledger is written. Nothing here asks the product.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

LEDGER = "ledger.jsonl"
HEAD = "head.json"
SEARCH = "search"
"""The batch of everything that the search itself asked for; the others are comparisons."""

Key = tuple[str, int, int, int]
"""Names an evaluation: batch, number (of the generation), candidate, seed."""

FAILED = {"nan", "oom", "timeout", "error"}
NOT_FINAL = {"lost", "cancelled"}


class Attempt(NamedTuple):
    key: Key
    number: int
    reserved_ms: int
    status: str | None  # None: still open
    score: float | None
    charged_ms: int
    seconds: float
    cause: str
    is_final: bool  # otherwise the evaluation is made again


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


@dataclass(frozen=True)
class Books:
    """What the lines of a ledger say, added up by the test itself."""

    lines: tuple[dict[str, Any], ...]

    @classmethod
    def of(cls, run: Path) -> "Books":
        data = (run / LEDGER).read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        return cls(tuple(json.loads(line) for line in whole.splitlines()))

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [line["event"] for line in self.lines if line["event"]["kind"] == kind]

    @cached_property
    def plan(self) -> dict[str, Any]:
        plan: dict[str, Any] = self.events("planned")[0]["plan"]
        return plan

    @property
    def shape(self) -> tuple[int, int, int]:
        """Population, generations, seeds per candidate, as they were carried out."""
        resolved = self.plan["resolved"]
        return resolved["population"], resolved["generations"], resolved["seeds_per_candidate"]

    @property
    def knobs(self) -> list[dict[str, Any]]:
        knobs: list[dict[str, Any]] = self.plan["space"]["knobs"]
        return knobs

    @property
    def sessions(self) -> int:
        return len(self.events("opened"))

    @cached_property
    def attempts(self) -> list[Attempt]:
        """In the order of their reservations."""
        found: dict[tuple[Key, int], Attempt] = {}
        for line in self.lines:
            event = line["event"]
            if event["kind"] == "reserved":
                key = _key(event)
                place = key, event["attempt"]
                assert place not in found, f"{place} is reserved twice"
                found[place] = Attempt(
                    key, event["attempt"], event["reserve_ms"], None, None, 0, 0.0, "", False
                )
            elif event["kind"] == "settled":
                place = _key(event), event["attempt"]
                assert found[place].status is None, f"{place} is settled twice"
                again = event["again"] is not None
                found[place] = found[place]._replace(
                    status=event["status"],
                    score=event["score"],
                    charged_ms=event["charged_ms"],
                    seconds=event["seconds"],
                    cause=event["cause"],
                    is_final=event["status"] not in NOT_FINAL and not again,
                )
        return list(found.values())

    @property
    def open_attempts(self) -> list[Attempt]:
        return [attempt for attempt in self.attempts if attempt.status is None]

    @cached_property
    def results(self) -> dict[Key, Attempt]:
        """The final attempt of every evaluation that has one. No evaluation has two."""
        final = [attempt for attempt in self.attempts if attempt.is_final]
        assert len({attempt.key for attempt in final}) == len(final), "an evaluation is paid twice"
        return {attempt.key: attempt for attempt in final}

    @property
    def searched(self) -> list[Attempt]:
        """The results of the search itself, comparisons left out."""
        return [attempt for key, attempt in sorted(self.results.items()) if key[0] == SEARCH]

    @property
    def statuses(self) -> dict[str, int]:
        """How many attempts ended in which way."""
        ends = [attempt.status for attempt in self.attempts if attempt.status is not None]
        return {status: ends.count(status) for status in sorted(set(ends))}

    @property
    def generations(self) -> list[dict[str, Any]]:
        """The points and seeds of each, and the digest of the search that has learned them."""
        told = {event["generation"]: event["digest"] for event in self.events("generation_told")}
        return [
            {
                "points": asked["points"],
                "seeds": asked["seeds"],
                "digest": told.get(asked["generation"]),
            }
            for asked in self.events("generation_asked")
        ]

    @property
    def comparisons(self) -> dict[str, dict[str, Any]]:
        """Of each comparison its configurations: name, point, changed settings, seeds."""
        return {
            f"{asked['panel']} {asked['number']}": {
                arm["name"]: {"point": arm["point"], "settings": arm["settings"], "seeds": seeds}
                for arm, seeds in zip(asked["arms"], asked["seeds"], strict=True)
            }
            for asked in self.events("panel_asked")
        }

    def scores(self, comparison: str, arm: str) -> dict[int, float | None]:
        """The raw score of every seed of one configuration of a comparison."""
        name, number = comparison.rsplit(" ", 1)
        candidate = list(self.comparisons[comparison]).index(arm)
        return {
            seed: attempt.score
            for (batch, batch_number, index, seed), attempt in self.results.items()
            if (batch, batch_number, index) == (name, int(number), candidate)
        }

    @property
    def candidate_means(self) -> dict[tuple[int, int], float]:
        """The mean over seeds of each candidate whose evaluations have all given a score."""
        scores: dict[tuple[int, int], list[float | None]] = {}
        for attempt in self.searched:
            scores.setdefault(attempt.key[1:3], []).append(attempt.score)
        seeds = self.shape[2]
        return {
            place: sum(found) / seeds
            for place, every in scores.items()
            if len(found := [score for score in every if score is not None]) == seeds
        }

    @property
    def baseline(self) -> list[float]:
        """The scores of the calibration that the run was planned with."""
        calibration = self.plan["calibration"] or {"samples": []}
        return [sample["score"] for sample in calibration["samples"]]

    @property
    def fired(self) -> list[Fired]:
        return [Fired(*(event[name] for name in Fired._fields)) for event in self.events("fired")]

    @property
    def verdict(self) -> Verdict | None:
        decided = self.events("decided")
        if not decided:
            return None
        event = decided[-1]
        point = None if event["point"] is None else tuple(event["point"])
        return Verdict(
            event["grade"], event["no_go"], event["arm"], point, event["gain"], event["lower"]
        )

    @property
    def is_concluded(self) -> bool:
        return bool(self.events("concluded"))

    @property
    def device_ms(self) -> int:
        return sum(attempt.charged_ms for attempt in self.attempts)

    @property
    def paid_before_ms(self) -> int:
        """Device time that counts against the run's caps and was spent on its calibration."""
        calibration = self.plan["calibration"]
        return 0 if calibration is None else int(calibration["charged_ms"])

    @property
    def essence(self) -> dict[str, Any]:
        """What the run found: no times, and not how often it was interrupted."""
        verdict = self.verdict
        return {
            "generations": self.generations,
            "comparisons": self.comparisons,
            "results": [
                [*key, attempt.status, attempt.score]
                for key, attempt in sorted(self.results.items())
            ],
            "verdict": None if verdict is None else verdict._asdict(),
            "concluded": self.is_concluded,
        }

    @property
    def kept(self) -> dict[str, Any]:
        """What is stored beside a golden ledger: the essence, what was spent, and what fired."""
        return {
            **self.essence,
            "statuses": self.statuses,
            "attempts": len(self.attempts),
            "open": len(self.open_attempts),
            "device_ms": self.device_ms,
            "fired": [fired._asdict() for fired in self.fired],
            "overridden": [event["rule"] for event in self.events("overridden")],
            "caps": [self.plan["caps"], *(event["caps"] for event in self.events("amended"))],
        }

    def overshoots(self) -> list[str]:
        """Every reservation that did not fit under a cap when it was made, by these books alone.

        Wall clock is the sum over sessions of the last moment each was seen; what a killed session
        spent after its last record is unknown, so these books may only be too kind.
        """
        caps, price = self.plan["caps"], self.plan["price_per_device_hour"]
        found: list[str] = []
        held: dict[tuple[Key, int], int] = {}
        device_ms = self.paid_before_ms
        sessions: list[int] = []
        begun: set[Key] = set()
        for line in self.lines:
            event = line["event"]
            kind = event["kind"]
            if kind == "opened":
                sessions.append(0)
            elif kind == "amended":
                caps = event["caps"]
            if sessions:
                sessions[-1] = max(sessions[-1], line["elapsed_ms"])
            if kind == "settled":
                held.pop((_key(event), event["attempt"]))
                device_ms += event["charged_ms"]
            if kind != "reserved":
                continue
            held[_key(event), event["attempt"]] = event["reserve_ms"]
            if _key(event)[0] == SEARCH:
                begun.add(_key(event))
            hours = (device_ms + sum(held.values())) / 3_600_000
            open_hours = (sum(sessions) + event["reserve_ms"]) / 3_600_000
            for name, used, cap in (
                ("evaluations", len(begun), caps["evaluations"]),
                ("device-hours", hours, caps["device_hours"]),
                ("cost", hours * price, caps["cost"]),
                ("hours", open_hours, caps["hours"]),
            ):
                if cap is not None and used > cap * (1 + 1e-9):
                    found.append(f"record {line['seq']}: {name} {used} of {cap}")
        return found


def _key(event: dict[str, Any]) -> Key:
    batch = SEARCH if event["panel"] is None else event["panel"]
    return batch, event["generation"], event["candidate"], event["seed"]


def sealed(lines: Iterable[dict[str, Any]]) -> bytes:
    """A ledger of these lines whose chain of hashes is right, whatever they say."""
    previous, data = "", b""
    for line in lines:
        unsealed = {name: value for name, value in line.items() if name != "h"}
        body = json.dumps(unsealed, separators=(",", ":"), ensure_ascii=False).encode()[:-1]
        previous = hashlib.sha256(previous.encode() + body).hexdigest()[:32]
        data += body + b',"h":"' + previous.encode() + b'"}\n'
    return data


def renamed(run: Path, names: dict[str, str]) -> None:
    """Write a ledger anew in which every text that holds one of these is another instead."""

    def other(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: other(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [other(inner) for inner in value]
        found = [new for old, new in names.items() if isinstance(value, str) and old in value]
        return found[0] if found else value

    (run / LEDGER).write_bytes(sealed(other(line) for line in Books.of(run).lines))


def records(run: Path) -> int:
    """How many whole records a run's ledger holds; none while there is no ledger."""
    ledger = run / LEDGER
    return ledger.read_bytes().count(b"\n") if ledger.exists() else 0


def cut(run: Path, keep: int, *, half_of_the_next: bool = False) -> None:
    """Leave the first records of a ledger, as a kill at that moment does."""
    lines = (run / LEDGER).read_bytes().splitlines(keepends=True)
    rest = lines[keep][: len(lines[keep]) // 2] if half_of_the_next else b""
    (run / LEDGER).write_bytes(b"".join(lines[:keep]) + rest)
    (run / HEAD).unlink(missing_ok=True)
