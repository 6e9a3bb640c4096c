"""Every option that is a key of the configuration, by that key."""

from collections.abc import Iterator
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from budgets.terms import Thresholds
from orchestrator.config.document import THRESHOLDS
from orchestrator.config.sections import RULES, SECTIONS, Flag, Section, Top


@dataclass(frozen=True)
class Said:
    """An option and what it takes."""

    spellings: tuple[str, ...]  # that of today first
    kind: Any  # the type, without what else its section checks
    default: Any
    flag: Flag

    @property
    def name(self) -> str:
        """As people write it."""
        return self.spellings[0].partition("/")[0]


def _said(key: str, field: FieldInfo, flag: Flag) -> Said:
    spelling = flag.spelling or f"--{key.rpartition('.')[2].replace('_', '-')}"
    return Said((spelling, *flag.old), _bare(field.annotation), field.default, flag)


def _bare(kind: Any) -> Any:
    """The type without its constraints: these are the section's, whoever says the value."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    if get_origin(kind) in {Union, UnionType}:
        return Union[tuple(map(_bare, get_args(kind)))]  # noqa: UP007 - of as many as there are
    return list[str] if get_origin(kind) is list else kind


def _all() -> Iterator[tuple[str, Said]]:
    tables: dict[str, type[Section]] = {"": Top, **SECTIONS}
    for table, section in tables.items():
        for name, own in section.keys().items():
            key, field = f"{table}.{name}".lstrip("."), section.model_fields[own]
            yield from ((key, _said(key, field, m)) for m in field.metadata if isinstance(m, Flag))
    for name, flag in RULES.items():
        key = f"{THRESHOLDS}.{name}"
        yield key, _said(key, Thresholds.model_fields[name], flag)


FLAGS = dict(_all())
"""In the order of the file."""
