"""`init`: a commented configuration to begin with."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal, get_args

from typer import Option

from budgets.ledger.storage import write_aside
from budgets.plain import PROGRAM, command, printable, shell_word
from orchestrator.cli.options import Json
from orchestrator.cli.terminal import print_json, print_line
from orchestrator.look.page import named_file

Template = Literal[
    "smoke",
    "phase1",
    "phase2",
    "campaign",
    "factorial",
    "nanochat",
    "command",
    "function",
]

TEMPLATES = files("orchestrator.cli") / "templates"


def init(
    template: Annotated[Template, Option("--template", help="What the file describes.")],
    out: Annotated[
        Path | None,
        Option("--out", metavar="FILE", help="Write it there, if there is nothing."),
    ] = None,
    as_json: Json = False,
) -> None:
    """A commented configuration file to begin with.

    Writes nothing but the file --out.
    """
    text = template_text(template)
    if out is None:
        if as_json:
            print_json({"template": template, "text": text})
        else:
            print_line(text.rstrip())
        return
    if out.exists() or out.is_symlink():
        raise ValueError(f"--out {out}: there is something already; name another file")
    named_file("--out", out)
    text = text.replace("THIS-FILE", shell_word(str(out)))
    write_aside(out, text.encode())
    if as_json:
        print_json({"template": template, "file": str(out)})
    else:
        print_line(printable(f"{out} is written. See it with: {command('explain', str(out))}"))


def template_text(template: Template) -> str:
    """The file's text, with THIS-FILE for its name."""
    assert template in get_args(Template)
    text = (TEMPLATES / f"{template}.toml").read_text(encoding="utf-8")
    return text.replace("python -m orchestrator", PROGRAM)
