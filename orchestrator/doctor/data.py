"""Whether an objective can be evaluated: its data, how it is split, and the hash of it."""

import re

from budgets.plain import PROGRAM
from orchestrator.doctor.asking import Answer, Ask, NoAnswerError
from orchestrator.doctor.finding import Finding, Section, nothing_is_missing
from orchestrator.doctor.versions import pip

_INSTALL = re.compile(r"pip install ((?:--[\w-]+ )*(?:\"[^\"]+\"|\S+))")

OF_THE_PROGRAM = "program_"
"""What the names of a program's versions begin with."""

_EXTRA = re.compile(r"\"?cmaes-orchestrator(\[[\w,-]+\])\"?")


def data(name: str, ask: Ask, options: str = "", checkout: str = "") -> tuple[Finding, ...]:
    """What objective `name` trains on and is scored on, read in a process of its own.

    The answer has the objective's own part under "", and one for each condition of a campaign. For
    the commands that mend: `options` are those of the command line that name what is evaluated,
    `checkout` is the directory that the project is installed from, if there is one.
    """
    try:
        answer = ask()
    except NoAnswerError as error:
        return (Finding("data", "unknown", str(error), f"{PROGRAM} doctor{options}"),)
    repeat = f"mend that, then {PROGRAM} doctor{options}"
    if name == "nanochat":
        repeat = f"{PROGRAM} doctor --set data=PATH, with a PATH that is there"
    found = [one for part in answer for one in _read(name, part, answer[part], (repeat, checkout))]
    if len(answer) > 1 and nothing_is_missing([Section("", tuple(found))]):
        texts = {part["provenance"].get("data_sha256") for part in answer.values()}
        on = f" on {len(texts)} texts" if len(texts) > 1 else ""
        found.append(Finding("conditions", "ok", f"{len(answer) - 1} can be evaluated{on}"))
    return tuple(found)


def _read(
    name: str, condition: str, answer: Answer, mending: tuple[str, str]
) -> tuple[Finding, ...]:
    """Of a condition only what stands in its way, or should be known."""
    of = f" of {condition}" if condition else ""
    if "failed" in answer:
        said = str(answer["failed"])
        what = "data" if name == "nanochat" else "objective"
        return (Finding(f"{what}{of}", "missing", said, _mend(said, condition, *mending)),)
    warnings = [Finding(f"warning{of}", "ok", str(said)) for said in answer["warnings"]]
    if condition:
        return tuple(warnings)
    seen = f"{name}, {answer['knobs']} knobs, sha256 {str(answer['fingerprint'])[:16]}"
    there = answer["provenance"]
    found = _text(there) if "train_tokens" in there else _others(there, name)
    return (Finding("objective", "ok", seen), *found, *warnings)


def _others(there: Answer, name: str) -> list[Finding]:
    """What is on record of a program that is not ours, and of data that is no text of ours."""
    program = {key: value for key, value in there.items() if key.startswith(OF_THE_PROGRAM)}
    commit = {key: there[key] for key in ("commit", "dirty") if key in there}
    data = {key: value for key, value in there.items() if key not in program | commit}
    none = f"{name} names none" if program or commit else f"{name} needs none"
    found = [Finding("data", "ok", _listed(data) or none)]
    if program:
        installed = {key.removeprefix(OF_THE_PROGRAM): value for key, value in program.items()}
        found.append(Finding("program", "ok", _listed(installed)))
    if "commit" in commit:
        dirty = ", and files that differ from it" if commit.get("dirty") else ""
        found.append(Finding("commit", "ok", f"{commit['commit']}{dirty}"))
    return found


def _listed(there: Answer) -> str:
    return ", ".join(f"{key} {value}" for key, value in there.items())


def _text(there: Answer) -> list[Finding]:
    """What is on record of a text of ours."""
    train, val = there["train_tokens"], there["val_tokens"]
    tokenizer = str(there["tokenizer"])
    if there["tokenizer_sha256"]:
        tokenizer += f", sha256 {str(there['tokenizer_sha256'])[:16]}"
    source = f"{there['data']}: {there['documents']:,} documents, sha256 {there['data_sha256']}"
    split = f"{train:,} tokens to train on, {val:,} held out ({val / (train + val):.1%})"
    return [
        Finding("data", "ok", source),
        Finding("split", "ok", split),
        Finding("tokenizer", "ok", tokenizer),
    ]


def _mend(said: str, condition: str, repeat: str, checkout: str) -> str:
    """The command in an objective's own words, or how to name something else."""
    if install := _INSTALL.search(said):
        return pip(_EXTRA.sub(rf'-e "{checkout}\1"', install[1]) if checkout else install[1])
    if condition and repeat.startswith(PROGRAM):
        return f"name data that is there in the condition {condition} of the file"
    return repeat
