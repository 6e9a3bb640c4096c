"""The base of what is worked out, shown and handed on: of ledgers' own records it is `Terms`."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Never changed, and with no field that it does not name."""

    model_config = ConfigDict(frozen=True, extra="forbid")
