"""The formats of a plot's file, and whether any can be written here: known without drawing."""

from importlib.util import find_spec
from typing import Literal, get_args

Form = Literal["png", "pdf", "svg"]

FORMS: tuple[Form, ...] = get_args(Form)

MISSING = "a picture needs matplotlib: pip install matplotlib"


def can_draw() -> bool:
    """Whether matplotlib is installed. Does not import it."""
    return find_spec("matplotlib") is not None
