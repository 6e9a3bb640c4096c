"""The test's own books of a run, from the raw lines of its ledger.

The one place of the suite that knows how a ledger is written. Nothing here asks the product.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from math import floor
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


class Use(NamedTuple):
    """What is spent once an attempt is reserved, the worst of all that is in flight included."""

    record: int
    evaluations: int  # of the search
    device_ms: int
    open_ms: int
    end_ms: int  # of the latest attempt, since 1970
    caps: dict[str, Any]  # in force


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
    def conditions(self) -> list[str]:
        """Of a campaign of trainings: the conditions, in the order of the candidates."""
        return [condition["name"] for condition in self.plan["campaign"]["conditions"]]

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
    def overridden(self) -> list[tuple[str, int, str]]:
        """Rule, generation and reason of each override."""
        return [
            (event["rule"], event["generation"], event["reason"])
            for event in self.events("overridden")
        ]

    def reserved_at(self, key: Key) -> int:
        """How many records there are when that evaluation has just been reserved."""
        return next(
            number
            for number, line in enumerate(self.lines, 1)
            if line["event"]["kind"] == "reserved" and _key(line["event"]) == key
        )

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

    @cached_property
    def paid_before_ms(self) -> int:
        """Device time that led to the run and counts against its caps."""
        calibration, parent = self.plan["calibration"] or {}, self.plan["parent"] or {}
        return int(calibration.get("charged_ms", 0) + parent.get("device_ms", 0))

    @property
    def open_ms(self) -> int:
        """How long the run was open, by the last moment that each session is known to have seen."""
        return self._time[1]

    @property
    def uses(self) -> list[Use]:
        """What each reservation made of every currency."""
        return self._time[0]

    @cached_property
    def _time(self) -> tuple[list[Use], int]:
        caps, uses = self.plan["caps"], []
        held: dict[tuple[Key, int], tuple[int, int, int]] = {}  # session, since, reserved
        device_ms = self.paid_before_ms
        sessions = [(self.plan[paid] or {}).get("open_ms", 0) for paid in ("calibration", "parent")]
        begun: set[Key] = set()
        now = opened = 0
        for line in self.lines:
            event, elapsed = line["event"], line["elapsed_ms"]
            kind, at = event["kind"], milliseconds(line["at"])
            if kind == "opened":
                sessions.append(0)
                opened = max(now, at)
            elif kind == "amended":
                caps = event["caps"]
            if kind != "planned":
                sessions[-1] = max(sessions[-1], elapsed)
            now = max(now, at, opened + elapsed)
            if kind == "settled":
                session, since, reserved = held.pop((_key(event), event["attempt"]))
                device_ms += event["charged_ms"]
                if session < len(sessions) - 1:  # it was open for as long as that attempt
                    proven = since + min(event["charged_ms"], reserved)
                    sessions[session] = max(sessions[session], proven)
            elif kind == "reserved":
                reserved = event["reserve_ms"]
                held[_key(event), event["attempt"]] = len(sessions) - 1, sessions[-1], reserved
                begun |= {_key(event)} if _key(event)[0] == SEARCH else set()
                ends = list(sessions)
                for session, since, worst in held.values():
                    ends[session] = max(ends[session], since + worst)
                worst_ms = device_ms + sum(one[2] for one in held.values())
                uses.append(Use(line["seq"], len(begun), worst_ms, sum(ends), now + reserved, caps))
        return uses, sum(sessions)

    def overshoots(self) -> list[str]:
        """Every reservation that did not fit under a cap when it was made, by these books alone."""
        plan, found = self.plan, []
        for use in self.uses:
            caps = use.caps
            hours = [caps["device_hours"], caps["hours"]]
            if caps["cost"] is not None:
                hours.append(caps["cost"] / plan["price_per_device_hour"])
            limits = [caps["evaluations"], *(h and floor(h * 3_600_000) for h in hours)]
            used = [use.evaluations, use.device_ms, use.open_ms, use.device_ms]
            pairs = list(zip(used, limits, strict=False))
            if caps["window"] is not None:
                pairs.append((use.end_ms, self.deadline_ms(caps["window"])))
            found += [
                f"record {use.record}: {u} of {c}" for u, c in pairs if c is not None and u > c
            ]
        return found

    def deadline_ms(self, window: dict[str, Any]) -> float:
        """When the last evaluation must be over, in milliseconds since 1970."""
        if window["until"] is not None:
            end = milliseconds(window["until"])
        else:
            began = milliseconds(self.lines[0]["at"])
            began -= (self.plan["calibration"] or {}).get("open_ms", 0)
            end = began + window["hours"] * 3_600_000
        return float(end - 1000 * window["margin_seconds"])


def milliseconds(at: str) -> int:
    """Since 1970."""
    return round(1000 * datetime.fromisoformat(at).timestamp())


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
    """Leave the first records of a ledger, as a kill at that moment does, and the evaluations."""
    lines = (run / LEDGER).read_bytes().splitlines(keepends=True)
    rest = lines[keep][: len(lines[keep]) // 2] if half_of_the_next else b""
    (run / LEDGER).write_bytes(b"".join(lines[:keep]) + rest)
    for path in run.iterdir():  # reports, and what else was made of the later records
        if path.name not in (LEDGER, "eval"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
