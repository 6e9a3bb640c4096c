"""Blocks as one HTML file that needs nothing else: no script, no network.

Every text is escaped and loses the characters that steer a terminal or turn text around. The only
markup from elsewhere is a figure's SVG, which `orchestrator.look.plots` draws and escapes.
"""

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from budgets.formatting import printable
from objectives.settings import cut
from orchestrator.look.answer import answer
from orchestrator.look.blocks import Block, Details, Figure, Page
from orchestrator.look.run import Run
from orchestrator.look.sections import sections

MOST_CHARACTERS = 4000  # of one text: nobody reads more, and a browser would choke on it


def page_of(run: Run, *, with_plots: bool = True) -> Page:
    """Everything there is to show of a run; to draw its plots takes seconds."""
    from orchestrator.look.plots import figures

    drawn = figures(run) if with_plots else ()
    return Page(run.plan.run_id, about(run), answer(run), sections(run, drawn))


def about(run: Run) -> str:
    """Which run it is, and as of which record."""
    tier = "" if run.plan.tier is None else f", tier {run.plan.tier}"
    as_of = f"as of {run.last:%Y-%m-%d %H:%M} UTC, record {run.state.records}"
    return f"{run.objective}, {run.plan.phase}{tier}, {as_of}"


def html(page: Page) -> str:
    """The whole document: what is known, in a screen, and everything behind it."""
    main = filled("answer.html.j2", page=page)
    main += filled("sections.html.j2", sections=page.sections)
    return document(f"{page.answer.title}: {page.name}", main)


def document(title: str, main: Markup, tag: str = "") -> str:
    """A document around what is inside its <main>; with the tag of that, one that follows it."""
    head = {"title": cut(title, 120), "style": style(), "policy": policy(), "tag": tag}
    return str(filled("base.html.j2", main=main, **head))


@cache
def style() -> Markup:
    """The style sheet of every page."""
    sheet = (files("orchestrator.look") / "templates" / "style.css").read_text()
    return Markup(sheet)  # noqa: S704 - our own file


def policy() -> str:
    """What a browser may do: show the page in our style, and load nothing."""
    digest = base64.b64encode(hashlib.sha256(style().encode()).digest()).decode()
    allowed = f"style-src 'sha256-{digest}'; img-src data:"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


# Templates


def filled(template: str, **values: Any) -> Markup:
    """A template of ours with those values."""
    rendered = _templates().get_template(template).render(**values)
    return Markup(rendered)  # noqa: S704 - a template escapes what it is given


@cache
def _templates() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("orchestrator.look"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: _clean(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(block=_block)
    return made


def _clean(text: str) -> str:
    """Without characters that steer: a page has no NUL, and nothing turns its text around."""
    return printable(cut(text, MOST_CHARACTERS))


def _block(own: Block) -> Markup:
    """Raises TypeError on what is none: nothing is left out in silence."""
    match own:
        case str():
            tokens = _markdown().parse(printable(own))
            for token in tokens:
                if token.attrs.pop("style", None):  # the policy forbids it
                    token.attrs["class"] = "number"
            return Markup(_markdown().renderer.render(tokens, _markdown().options, {}))  # noqa: S704 - it escapes
        case Figure():
            return filled("figure.html.j2", own=own)
        case Details():
            return filled("details.html.j2", own=own)
    raise TypeError(f"expected Markdown, a Figure or Details to show, got {type(own).__name__}")


@cache
def _markdown() -> Any:
    """Of the little that blocks are written in: no markup of anybody else, no links, no images."""
    from markdown_it import MarkdownIt

    made = MarkdownIt("zero", {"html": False})
    made.enable(["table", "list", "fence", "backticks", "emphasis", "escape"])
    made.add_render_rule("table_open", lambda *_: '<div class="scroll"><table>')
    made.add_render_rule("table_close", lambda *_: "</table></div>")
    made.add_render_rule("fence", lambda _, tokens, at, *__: _fence(tokens[at]))
    return made


def _fence(token: Any) -> str:
    shown = Markup('<pre class="command"><code>{}</code></pre>')
    return "".join(map(shown.format, token.content.splitlines()))
