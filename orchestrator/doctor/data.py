"""Whether an objective can be evaluated: its data, how it is split, and the hash of it."""

import re

from orchestrator.doctor.asking import Answer, Ask, NoAnswerError
from orchestrator.doctor.finding import ME, Finding
from orchestrator.doctor.versions import pip

_INSTALL = re.compile(r"pip install ((?:--[\w-]+ )*(?:\"[^\"]+\"|\S+))")

_EXTRA = re.compile(r"\"?cmaes-orchestrator(\[[\w,-]+\])\"?")


def data(name: str, ask: Ask, options: str = "", checkout: str = "") -> tuple[Finding, ...]:
    """What objective `name` trains on and is scored on, read in a process of its own.

    For the commands that mend: `options` are those of the command line that name the objective,
    `checkout` is the directory that the project is installed from, if there is one.
    """
    again = f"{ME} doctor --objective {name}{options}"
    try:
        answer = ask()
    except NoAnswerError as error:
        return (Finding("data", "unknown", str(error), again),)
    if "failed" in answer:
        said = str(answer["failed"])
        return (Finding("data", "missing", said, _mend(said, name, checkout)),)
    fingerprint = str(answer["fingerprint"])
    seen = f"{name}, {answer['knobs']} knobs, sha256 {fingerprint[:16]}"
    found = [Finding("objective", "ok", seen), *_text(answer["provenance"], name)]
    return (*found, *(Finding("warning", "ok", str(said)) for said in answer["warnings"]))


def _text(there: Answer, name: str) -> list[Finding]:
    """What is on record of a text; an objective may need none."""
    if "data_sha256" not in there:
        listed = ", ".join(f"{key} {value}" for key, value in there.items())
        return [Finding("data", "ok", listed or f"{name} needs none")]
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


def _mend(said: str, name: str, checkout: str) -> str:
    """The command in an objective's own words, or how to name something else."""
    if install := _INSTALL.search(said):
        return pip(_EXTRA.sub(rf'-e "{checkout}\1"', install[1]) if checkout else install[1])
    return f"{ME} doctor --objective {name} --set data=PATH, with a PATH that is there"
