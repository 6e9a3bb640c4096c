"""The style sheet that gives a plot's classes their looks: light, dark, and light when printed."""

from collections.abc import Iterator
from typing import Literal, get_args

from orchestrator.charts.chart import Role
from orchestrator.charts.inks import (
    DARK_PAPER,
    HEAT_STEPS,
    INKS,
    LIGHT_PAPER,
    heat,
    text_on,
)
from orchestrator.charts.lettering import TEXT

Paper = Literal["light", "dark"]

_SHAPES = f"""
.plot{{display:block;width:100%;height:auto;max-width:1100px;color:var(--text);
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}}
.plot text{{font-size:{TEXT:g}px;fill:var(--text)}}
.plot .name{{font-weight:600}}
.plot .faint,.plot .tick{{fill:var(--faint)}}
.plot .middle,.plot .on,.plot .why{{text-anchor:middle}}
.plot .end{{text-anchor:end}}
.plot .smaller{{font-size:9px}}
.plot .grid{{fill:none;stroke:var(--grid);stroke-width:1}}
.plot .axis,.plot .lead{{fill:none;stroke:var(--faint);stroke-width:1}}
.plot .nothing{{fill:none;stroke:var(--grid);stroke-width:1;stroke-dasharray:4 4}}
.plot .line{{fill:none;stroke:var(--ink);stroke-width:2;stroke-linejoin:round}}
.plot .casing{{fill:none;stroke:var(--paper);
stroke-width:4.5;stroke-opacity:.7;stroke-linejoin:round}}
.plot .thin{{stroke-width:1.1}}
.plot .rule{{stroke-width:1.5}}
.plot .dash{{stroke-dasharray:6 4}}
.plot .band{{fill:var(--ink);fill-opacity:.17;stroke:var(--ink);stroke-opacity:.45;stroke-width:.7}}
.plot .dot,.plot .cross{{fill:none;stroke:var(--ink)}}
.plot .dot{{stroke-width:5;stroke-linecap:round}}
.plot .dot.small{{stroke-width:3.2}}
.plot .cross.small{{stroke-width:1.3}}
.plot .pale{{opacity:.45}}
.plot .dot.large{{stroke-width:9}}
.plot .cross{{stroke-width:1.7}}
.plot .cross.large{{stroke-width:2.6}}
.plot .solid{{fill:var(--ink);stroke:var(--paper);stroke-width:.6}}
.plot .open{{fill:var(--paper);stroke:var(--ink);stroke-width:1.5}}
.plot .range{{fill:none;stroke:var(--ink);stroke-width:1.7}}
.plot .area{{fill:var(--ink);stroke:var(--paper);stroke-width:.4}}
.plot .hollow{{fill-opacity:.15;stroke:var(--ink);stroke-width:1}}
.plot .textured{{stroke:var(--ink);stroke-width:.8}}
.plot .narrow{{stroke-width:0}}
.plot .ground{{fill:var(--ink)}}
.plot .stroke{{fill:none;stroke:var(--paper);stroke-width:1.5}}
.plot .note{{fill:var(--text);stroke:var(--paper);stroke-width:3;paint-order:stroke}}
.plot .cell{{stroke:var(--paper);stroke-width:1}}
@media print{{.plot{{break-inside:avoid}}}}
"""


def _colours(paper: Paper) -> Iterator[str]:
    own = {
        "light": (LIGHT_PAPER, "#1c1c1c", "#5c5c5c", "#e4e4e4"),
        "dark": (DARK_PAPER, "#ececec", "#a9adb5", "#33373f"),
    }[paper]
    names = zip(("paper", "text", "faint", "grid"), own, strict=True)
    yield ".plot{" + ";".join(f"--{name}:{colour}" for name, colour in names) + "}"
    for role in get_args(Role):
        ink = INKS[role]
        yield f".plot .role-{role}{{--ink:{ink.light if paper == 'light' else ink.dark}}}"
    yield f".plot .cell.heat-none{{fill:{own[3]}}}"
    for step in range(-HEAT_STEPS, HEAT_STEPS + 1):
        colour, name = heat(step, paper), f"heat-{'m' if step < 0 else 'p'}{abs(step)}"
        yield f".plot .cell.{name}{{fill:{colour}}}.plot .on.{name}{{fill:{text_on(colour)}}}"


def _dashes() -> Iterator[str]:
    for role, ink in INKS.items():
        if ink.dash:
            pattern = " ".join(f"{length:g}" for length in ink.dash)
            yield f".plot .role-{role}.dash-own{{stroke-dasharray:{pattern}}}"


def style() -> str:
    """The whole sheet. On paper, plots are light whatever the screen is."""
    dark = "".join(_colours("dark"))
    parts = [*_colours("light"), _SHAPES.replace("\n", ""), *_dashes()]
    return "".join(parts) + f"@media screen and (prefers-color-scheme:dark){{{dark}}}"
