"""Single plots of a run as files for a paper."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from budgets.ledger.storage import write_aside
from orchestrator.charts.chart import Plot
from orchestrator.charts.figure import picture
from orchestrator.charts.forms import FORMS, MISSING, Form, can_draw
from orchestrator.report.model import Report
from orchestrator.report.plots import PLOTS

EVERY = "all"


def write_pictures(report: Report, wanted: Mapping[Form, Sequence[str]], out: Path) -> list[Path]:
    """The files written: in each form the plots of these names, or of `all` those that the run has.

    Into the folder `out`, each by its name; one plot into the file `out` where that ends with
    `.png` or whatever the form is. Raises ValueError before anything is written on a name that is
    no plot's, on a plot that this run has nothing to show in, with its reason, and without
    matplotlib; OSError.
    """
    drawn = {
        path: (plot, form)
        for form, names in wanted.items()
        if names
        for path, plot in _planned(report, names, form, out)
    }
    for path, (plot, form) in drawn.items():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_aside(path, picture(plot, form))
    return list(drawn)


def _planned(
    report: Report, names: Sequence[str], form: Form, out: Path
) -> Iterable[tuple[Path, Plot]]:
    chosen = _chosen(report, names, form)
    if not can_draw():
        raise ValueError(f"--{form}: {MISSING}")
    return zip(_paths(list(chosen), form, out), chosen.values(), strict=True)


def _chosen(report: Report, names: Sequence[str], form: Form) -> Mapping[str, Plot]:
    """Each plot that is asked for, once, in reading order."""
    for name in names:
        if name not in PLOTS and name != EVERY:
            near = get_close_matches(name, PLOTS, 1)
            hint = f". Did you mean {near[0]!r}?" if near else ""
            known = ", ".join(PLOTS)
            raise ValueError(f"--{form}: expected one of {known}, or {EVERY}, got {name!r}{hint}")
    found: dict[str, Plot] = {}
    for name, kind in PLOTS.items():
        if name not in names and EVERY not in names:
            continue
        plot = kind.draw(report)
        if plot is not None:
            found[name] = plot
        elif name in names:
            raise ValueError(
                f"--{form} {name}: {report.identity.run_id} has nothing to show in it: "
                f"{_why_not(report, name)}"
            )
    return found


def _why_not(report: Report, name: str) -> str:
    """Why the plot of that name is None for the run: `nothing failed`."""
    own = {
        "spread": report.no_distribution,
        "axes": report.no_distribution,
        "correlations": report.no_distribution,
        "curves": report.no_curves,
    }.get(name, "")
    return own or f"it takes {PLOTS[name].needs}"


def _paths(names: Sequence[str], form: Form, out: Path) -> list[Path]:
    """Where each goes. Raises ValueError where something else is in the way."""
    is_file = out.suffix.lower() == f".{form}" and not out.is_dir()
    if is_file and len(names) != 1:
        raise ValueError(f"--out {out}: {len(names)} plots go into a folder, not into one file")
    if not out.parent.is_dir():
        raise ValueError(f"--out: {out.parent} is no directory: make it, or name another place")
    is_folder = out.is_dir() if out.exists() else out.suffix.lower().lstrip(".") not in FORMS
    if not is_file and not is_folder:
        raise ValueError(f"--out: expected a folder or a name that ends with .{form}, got {out}")
    paths = [out] if is_file else [out / f"{name}.{form}" for name in names]
    for path in paths:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise ValueError(f"{path} is no plain file: expected one, or nothing. Move it away")
    return paths
