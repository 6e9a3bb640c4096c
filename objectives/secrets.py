"""Secrets, taken out of text on its way to a ledger, a report or a log."""

import re
from collections.abc import Mapping

HIDDEN = "***"

_IN_URL = re.compile(r"(?<=://)[^\s/?#]+(?=@)")
"""`user:password`, or a token alone, before the host of a URL."""

_ENDS = r"(?:PASSWORD|SECRET)S?|TOKEN|PASSWD|APIKEY"
_WHOLE = r"(?<![A-Za-z0-9])(?:KEYS?|PASS)|(?<=_)PWD"
_LOWER = r"(?i:password|secret|api_?key|(?:access|auth)_?token)"
_NAME = rf"[A-Za-z0-9_-]*(?:{_ENDS}|{_WHOLE}|{_LOWER})(?![A-Za-z])[A-Za-z0-9_-]*"
"""A name with a word that is a secret's, or ends like one: PGPASSWORD, MYTOKEN, HF_TOKEN_2,
API_KEY. TOKENIZERS_PARALLELISM, KEYBOARD and MONKEY have none."""

_NAMED = re.compile(rf"(?<![A-Za-z0-9_-])({_NAME}[\"']?\s*[=:]\s*[\"']?)[^\s,;&\"')]+")
"""`HF_TOKEN=...` in capitals, as in environments: `tokens=512` is not one."""

_ISSUED = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,}|gh[opsu]_[A-Za-z0-9]{20,}"
    r"|github_pat_[A-Za-z0-9_]{20,}|AKIA[A-Z0-9]{16}|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|glpat-[A-Za-z0-9_-]{20,}|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+)"
)
"""Tokens as Hugging Face, OpenAI, GitHub, AWS, Slack and GitLab issue them, and JSON web tokens:
known by their beginnings. Keys of 40 hexadecimal digits look like commits, and are not."""

SHORTEST = 6  # characters: a shorter value stands in other words too


def are_in(text: str) -> bool:
    """Return whether `text` has a URL with a user name or a password, or an issued token."""
    return bool(_IN_URL.search(text) or _ISSUED.search(text))


def is_secret_name(name: str) -> bool:
    """Return whether an environment variable of that name usually holds a secret."""
    return re.fullmatch(_NAME, name.upper()) is not None


def redacted(text: str, environment: Mapping[str, str]) -> str:
    """Return `text` without credentials in URLs, named secrets and secrets of the environment."""
    for name in list(environment):
        value = environment.get(name, "")  # another thread may have taken it away meanwhile
        if len(value) >= SHORTEST and value in text and is_secret_name(name):
            text = text.replace(value, HIDDEN)
    text = _ISSUED.sub(HIDDEN, _IN_URL.sub(HIDDEN, text))
    return _NAMED.sub(rf"\g<1>{HIDDEN}", text)
