"""What is asked of the page and what it answers, before and after any socket."""

from dataclasses import dataclass
from http import HTTPStatus

NOTHING = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
"""A policy under which a browser loads and runs nothing."""

TEXT, HTML = "text/plain; charset=utf-8", "text/html; charset=utf-8"
JSON, SCRIPT = "application/json", "text/javascript; charset=utf-8"


@dataclass(frozen=True)
class Request:
    """What is asked for: a path without its query."""

    path: str
    known: str = ""  # If-None-Match: the tags of what the client has


@dataclass(frozen=True)
class Answer:
    """A status and a body, and what a browser may do with it."""

    status: HTTPStatus
    body: bytes = b""
    kind: str = TEXT
    tag: str = ""  # names the body: a client that has it is told so
    policy: str = NOTHING
    location: str = ""


def said(status: HTTPStatus, text: str) -> Answer:
    """A line of text."""
    return Answer(status, f"{text}\n".encode())


def unless_known(request: Request, answer: Answer) -> Answer:
    """Nothing but the tag, if the client has the body already."""
    tags = [tag.strip().removeprefix("W/") for tag in request.known.split(",")]
    if answer.tag and answer.status == HTTPStatus.OK and f'"{answer.tag}"' in tags:
        return Answer(HTTPStatus.NOT_MODIFIED, tag=answer.tag, policy=answer.policy)
    return answer
