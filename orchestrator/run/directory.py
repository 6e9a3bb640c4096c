"""A run's directory: which run it holds, and what a person changes or salvages."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from budgets.events import Amended, Fired, Owner, Planned
from budgets.formatting import PROGRAM
from budgets.ledger import (
    LEDGER,
    Clock,
    Ledger,
    LedgerCorruptError,
    Reader,
    set_aside_command,
    take_lock,
)
from budgets.plan import Caps, Plan, Window
from budgets.rules import OVERRIDABLE, firing
from budgets.state import ImpossibleEventError, Observer, RunState, apply, fold
from objectives.files import read_plain, replace
from orchestrator.plan.resolve import differences, in_short
from orchestrator.records.runs import load_state, state_of
from orchestrator.run.loop import Run


def open_run(ledger: Ledger, plan: Plan, owner: Owner, observers: list[Observer]) -> Run:
    """Return the run of `plan`: the one in the ledger, or a new one if the ledger is empty.

    Raises ValueError if the ledger belongs to another plan, LedgerCorruptError if there are
    evaluations although the ledger is gone.
    """
    if (state := state_of(ledger.path, ledger.replay())) is not None:
        check_same_plan(ledger.path.parent, state, plan)
        return Run(ledger, state, owner, observers)
    if any((ledger.path.parent / "eval").glob("*")):
        raise LedgerCorruptError(
            f"{ledger.path.parent} holds evaluations that were paid for, but its ledger is gone or "
            "empty. Put it back from a backup, or begin again with: "
            f"{set_aside_command(ledger.path.parent)}"
        )
    first = ledger.seal(Planned(plan=plan))
    ledger.append(first)
    return Run(ledger, apply(None, first), owner, observers)


def check_same_plan(directory: Path, recorded: RunState, asked: Plan) -> None:
    """Raise ValueError with the differences if the plans do not describe the same run.

    The asked plan may be the run's first one or the one that amendments have made of it.
    """
    changed = differences(recorded.planned, asked)
    if not changed or not differences(recorded.plan, asked):
        return
    way = "Repeat what the run began with, or give the new one a name (--run-id, name=)"
    if all(name.startswith(("caps.", "resolved.generations")) for name in changed):
        way = f"Caps change by: {PROGRAM} amend {directory} ... --reason WHY"
    raise ValueError(
        f"{directory} holds another plan (recorded -> asked): {in_short(changed)}. {way}."
    )


# Changes of a run by a person, on record


def amend(
    directory: Path, changes: Mapping[str, float | Window | None], reason: str, clock: Clock
) -> RunState:
    """Record other caps in the ledger in `directory`; return the state afterwards.

    `changes` are fields of `Caps`; a cap that is None or not named stays. Raises ValueError if it
    is not possible: more is spent already, or the tier allows no more.
    """
    if not reason.strip():
        raise ValueError("amend needs --reason: why may the run spend that?")
    load_state(directory)  # raises, before anything is touched, if there is no run
    with Ledger(directory, clock) as ledger:
        state = fold(ledger.replay())
        before, changed = state.plan.caps, {k: v for k, v in changes.items() if v is not None}
        caps = Caps.model_validate({**dict(before), **changed})
        if caps == before:
            raise ValueError("amend: expected a cap other than the run's own, e.g. --max-evals 480")
        record = ledger.seal(Amended(caps=caps, reason=reason))
        try:
            apply(state, record)
        except ImpossibleEventError as error:
            raise ValueError(f"amend: {error.why}") from error
        ledger.append(record)
        return state


def lets_through(state: RunState, rule: str, reason: str) -> tuple[Fired, ...]:
    """Return the firings that this override lets through; none where it is repeated.

    Raises ValueError unless that rule holds the run up and can be overridden. A reason is valid for
    one generation: if the rule fires again, a person has to look again.
    """
    is_passed = any((one.rule, one.reason) == (rule, reason) for one in state.overridden)
    triggers = tuple(one for one in firing(state) if one.rule == rule)
    if not triggers and not is_passed:
        raise ValueError(f"--override {rule}: that rule does not hold this run up")
    if triggers and rule not in OVERRIDABLE:
        raise ValueError(
            f"--override {rule}: this rule cannot be overridden. Remove its cause, or amend the "
            "cap, and repeat the command without --override"
        )
    if triggers and is_passed:
        raise ValueError(
            f"--override {rule}: the rule fires again in generation {triggers[0].generation}: "
            "look, and give another --reason"
        )
    return triggers


# What of a damaged ledger can be salvaged


def salvage(source: Path, out: Path) -> tuple[int, int, str]:
    """Copy the valid records at the start of the ledger, and the evaluations' files, to `out`.

    Return how many records were kept, how many bytes were not, and why not. The run's next session
    settles what is still running by those files. `source` is not changed. Raises ValueError when
    there is nothing to save or `out` exists; LedgerLockedError while `source` is in use.
    """
    if out.exists() or out.resolve().is_relative_to(source.resolve()):
        raise ValueError(
            f"--salvage: expected a new directory outside of {source}, got {out}. If an earlier "
            "--salvage failed there, remove it"
        )
    path, lock, state, end = source / LEDGER, take_lock(source), None, 0
    try:
        data, reader, why = read_plain(path), Reader(path), "its last line is unfinished"
        try:
            for record in reader:
                state = apply(state, record)
                end = record.end
            if state is not None and not reader.torn:
                say_again = "there is nothing to salvage. Repeat the run's command"
                raise ValueError(f"{path} is whole: {say_again}")
        except (LedgerCorruptError, ImpossibleEventError) as error:
            why = str(error).removeprefix(f"{path}: ").partition(". ")[0]
        if state is None:
            again = set_aside_command(source)
            raise ValueError(f"{path} holds no whole record to save. Begin again with: {again}")
        out.mkdir(mode=0o700, parents=True)
        if (source / "eval").is_dir():
            shutil.copytree(source / "eval", out / "eval", symlinks=True)
        replace(out / LEDGER, data[:end])  # last: a part of a copy has no ledger
    finally:
        os.close(lock)
    return state.records, len(data) - end, why
