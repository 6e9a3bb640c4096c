"""Single plots as files."""

import sys
from pathlib import Path

import pytest

from orchestrator.report import collect
from orchestrator.report.model import Report
from orchestrator.report.pictures import write_pictures
from orchestrator.report.plots import plots


@pytest.fixture(scope="module")
def found(finished_run: Path) -> Report:
    return collect.report(finished_run)


@pytest.mark.needs("matplotlib")
def test_a_plot_becomes_a_file_of_its_name_in_the_folder(found: Report, tmp_path: Path) -> None:
    paths = write_pictures(found, {"png": ["currencies", "budget"]}, tmp_path / "new")
    assert paths == [tmp_path / "new/budget.png", tmp_path / "new/currencies.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)


@pytest.mark.needs("matplotlib")
def test_one_plot_may_have_a_file_of_its_own(found: Report, tmp_path: Path) -> None:
    (path,) = write_pictures(found, {"pdf": ["budget"]}, tmp_path / "figure-1.pdf")
    assert path == tmp_path / "figure-1.pdf"
    assert path.read_bytes().startswith(b"%PDF")


@pytest.mark.needs("matplotlib")
def test_all_are_those_that_the_run_has(found: Report, tmp_path: Path) -> None:
    less = {"knobs": found.knobs[:2], "distribution": None, "marginals": ()}  # it takes seconds
    report = found.model_copy(update=less)
    paths = write_pictures(report, {"png": ["all"]}, tmp_path)
    assert [path.stem for path in paths] == [plot.name for plot in plots(report)]


@pytest.mark.needs("matplotlib")
def test_the_same_run_is_the_same_file(found: Report, tmp_path: Path) -> None:
    one, two = (write_pictures(found, {"pdf": ["scores"]}, tmp_path / n)[0] for n in "ab")
    assert one.read_bytes() == two.read_bytes()


def test_an_unknown_name_lists_what_there_is(found: Report, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"--png: expected one of scores, .* or all") as error:
        write_pictures(found, {"png": ["score"]}, tmp_path)
    assert "Did you mean 'scores'?" in str(error.value)


@pytest.mark.parametrize(
    ("name", "why"),
    [("liveness", "it takes a check"), ("confirmations", "it takes a search whose winner")],
)
def test_a_plot_without_anything_to_show_says_why(
    found: Report, tmp_path: Path, name: str, why: str
) -> None:
    with pytest.raises(ValueError, match=f"has nothing to show in it: {why}"):
        write_pictures(found, {"png": [name]}, tmp_path)
    assert not list(tmp_path.iterdir())


def test_where_curves_are_missing_the_report_says_why(found: Report, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing to show in it") as error:
        write_pictures(found, {"png": ["curves"]}, tmp_path)
    assert found.no_curves in str(error.value)


@pytest.mark.needs("matplotlib")
def test_several_plots_do_not_go_into_one_file(found: Report, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="2 plots go into a folder, not into one file"):
        write_pictures(found, {"png": ["budget", "scores"]}, tmp_path / "x.png")


@pytest.mark.needs("matplotlib")
def test_nothing_is_drawn_where_one_of_them_is_refused(found: Report, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--pdf: expected one of"):
        write_pictures(found, {"png": ["budget"], "pdf": ["budgets"]}, tmp_path / "new")
    assert not list(tmp_path.iterdir())


@pytest.mark.needs("matplotlib")
def test_no_folder_is_called_like_another_picture(found: Report, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected a folder or a name that ends with .pdf, got"):
        write_pictures(found, {"pdf": ["budget"]}, tmp_path / "x.png")
    assert not list(tmp_path.iterdir())


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_is_no_place_for_it_is_left_alone(found: Report, tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place.txt"
    place.write_text("mine")
    out = place
    if kind == "link":
        out = tmp_path / "budget.png"
        out.symlink_to(place)
    with pytest.raises(ValueError, match="expected"):
        write_pictures(found, {"png": ["budget"]}, out)
    assert place.read_text() == "mine"


def test_without_matplotlib_it_names_the_extra(
    found: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ValueError, match=r"--png: .*pip install 'cmaes-orchestrator\[plots\]'"):
        write_pictures(found, {"png": ["budget"]}, tmp_path)
