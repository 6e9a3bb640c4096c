"""Records of older schemas, told in today's words. A ledger on disk is never rewritten.

Schema 2 has the words `amended`, `late`, `withdrawn` and `salvaged`, a session's `schema_version`,
a plan's `parent` and a cap's `window`. Schema 3 has `panel_asked` and `decided`, a `panel` in every
word about an evaluation, `again` in a settlement, a generation's `distances`, `settings` and
`length`; a plan's `confirmation`, `proxy` and `source`. Schema 4 has `guided` and `descent` in what
a search learned; the methods "plain" and "guided", settings `known` and an `inherited` run in its
terms. Schema 5 has the phase "campaign" and such a plan's `campaign`. Schema 6 has the `slot` of a
reservation and the `command` of a session. All of them are absent from older records, where the
defaults are true. Schema 7 has no `settings` and `length` in `generation_asked`, and no
`generations` and `drift` in a plan's `proxy`, for a search evaluates all its candidates at one
length; and no `descent` in `generation_told`, for it never begins anew.
"""

from typing import Any

import orjson

from budgets.events import SCHEMA, Event, parse

Fields = dict[str, Any]


def _from_1(event: Fields) -> Fields:
    match event.get("kind"):
        case "planned":  # provenance came late in schema 1
            plan = {"provenance": {}, **event.get("plan", {}), "parent": None}
            return {**event, "plan": plan}
        case "opened":
            return {**event, "schema_version": 1}
        case _:
            return event


def _from_6(event: Fields) -> Fields:
    if event.get("kind") in ("generation_asked", "generation_told"):
        return {key: event[key] for key in event if key not in ("settings", "length", "descent")}
    proxy = event.get("plan", {}).get("proxy")
    if proxy is not None:
        kept = {key: proxy[key] for key in proxy if key not in ("generations", "drift")}
        return {**event, "plan": {**event["plan"], "proxy": kept}}
    return event


_CHANGED = (b'{"kind":"generation_', b'{"kind":"planned"', b'{"kind":"opened"')


def upcast(event: bytes, schema: int) -> Event:
    """The event that a session of this `schema` wrote. Raises pydantic.ValidationError."""
    if schema == SCHEMA or not event.startswith(_CHANGED):
        return parse(event)
    fields = orjson.loads(event)
    return parse(orjson.dumps(_from_6(_from_1(fields) if schema == 1 else fields)))
