"""`run FILE`, `init`, and what `explain` says of a file."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from typer import Option

from budgets.ledger.storage import write_aside
from budgets.plain import PROGRAM, command, plain, printable, shell_word
from orchestrator.cli.options import Json
from orchestrator.cli.terminal import print_json, print_line, print_markdown
from orchestrator.config import explain
from orchestrator.config.asked import request_of
from orchestrator.config.resolve import Resolved
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

TEMPLATES = files("orchestrator.config") / "templates"


def init(
    template: Annotated[Template, Option("--template", help="What the file describes.")],
    out: Annotated[
        Path | None,
        Option("--out", "--write", metavar="FILE", help="Write it there, if there is nothing."),
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


def explain_file(resolved: Resolved, *, as_json: bool) -> None:
    """Print every value with its origin, and what the file amounts to.

    Raises ValueError on what no command could begin.
    """
    request_of(resolved)
    document: dict[str, Any] = {"file": str(resolved.file), "values": explain.as_dict(resolved)}
    lines = [f"# {plain(str(resolved.file))}", *explain.to_markdown(resolved)]
    if resolved.campaign is not None:
        from orchestrator.campaign.matrix import as_dict, check, to_markdown

        check(resolved)
        document["campaign"] = as_dict(resolved)
        lines += ["", *to_markdown(resolved)]
    if as_json:
        print_json(document)
    else:
        print_markdown("\n".join(lines))
