"""Where a user's module is and what its code is, without importing it."""

import sys
from pathlib import Path

import pytest

from objectives.function.module import Named, find

LEFT_BEHIND = "import pathlib\npathlib.Path(__file__ + '.imported').touch()\n"


@pytest.mark.parametrize(
    ("name", "module", "function"),
    [
        ("python:train:evaluate", "train", "evaluate"),
        ("python:a.b_c.d:f1", "a.b_c.d", "f1"),
        ("python:größe:maß", "größe", "maß"),
    ],
)
def test_a_name_says_module_and_function(name: str, module: str, function: str) -> None:
    assert Named.parse(name) == Named(module, function)


@pytest.mark.parametrize(
    "name",
    [
        *("python:", "python:train", "python:train:", "python::f", "python:train:f:g"),
        *("python:.train:f", "python:a..b:f", "python:train:f()", "python:a b:f", "python:a:b.c"),
        *("python:1a:f", "python:class:f", "python:a:\n", "python:train.py:f", "python:./train:f"),
    ],
)
def test_what_is_no_such_name_is_refused_with_an_example(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"python:MODULE:FUNCTION|there is no module") as refused:
        find(Named.parse(name).module, tmp_path)
    assert "python:train:evaluate" in str(refused.value) or "train/py.py" in str(refused.value)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Modules that leave a file behind when they are imported."""
    for name in ("train.py", "pack/__init__.py", "pack/inner/__init__.py", "pack/inner/deep.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(LEFT_BEHIND)
    (tmp_path / "plain/below").mkdir(parents=True)
    (tmp_path / "plain/below/one.py").write_text(LEFT_BEHIND)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "file", "package"),
    [
        ("train", "train.py", None),
        ("pack", "pack/__init__.py", "pack"),
        ("pack.inner", "pack/inner/__init__.py", "pack"),
        ("pack.inner.deep", "pack/inner/deep.py", "pack"),
        ("plain.below.one", "plain/below/one.py", "plain"),
    ],
)
def test_a_module_is_found_and_not_imported(
    name: str, file: str, package: str | None, place: Path
) -> None:
    modules, path = set(sys.modules), list(sys.path)

    found = find(name, place)

    assert found.file == place / file
    assert found.package == (None if package is None else place / package)
    assert (set(sys.modules), sys.path) == (modules, path)
    assert not list(place.rglob("*.imported"))


def test_a_module_that_is_installed_is_found_too(
    place: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.syspath_prepend(str(place))

    assert find("pack.inner.deep", elsewhere).package == place / "pack"
    assert find("numpy.linalg", elsewhere).file.name == "__init__.py"


def test_a_module_beside_the_command_is_not_installed(
    place: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setattr(sys, "path", ["", str(place), *sys.path])

    with pytest.raises(ValueError, match="no module train in"):
        find("train", tmp_path_factory.mktemp("elsewhere"))


def test_the_directory_comes_before_what_is_installed(
    place: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tmp_path_factory.mktemp("first")
    (first / "train.py").touch()
    monkeypatch.syspath_prepend(str(place))

    assert find("train", first).file == first / "train.py"


@pytest.mark.parametrize("name", ["missing", "train.inner", "pack.missing", "plain", "plain.below"])
def test_a_module_that_is_not_there_is_named_with_its_directory(name: str, place: Path) -> None:
    with pytest.raises(ValueError, match=f"no module {name} in {place}.*--set directory=DIR"):
        find(name, place)


@pytest.mark.parametrize(("name", "whose"), [("random", "Python's"), ("budgets", "orchestrator's")])
def test_a_name_that_is_taken_is_refused(name: str, whose: str, place: Path) -> None:
    (place / f"{name}.py").touch()

    with pytest.raises(ValueError, match=f"{name} would be .*{whose} own: give yours another"):
        find(name, place)


def test_of_a_module_its_own_file_is_the_code(place: Path) -> None:
    before = find("train", place).code(place, ())
    (place / "other.py").touch()
    assert find("train", place).code(place, ()) == before

    (place / "train.py").write_text("changed = True")

    assert find("train", place).code(place, ()) != before


def test_of_a_package_all_of_it_is_the_code(place: Path) -> None:
    before = find("pack.inner.deep", place).code(place, ())
    (place / "train.py").touch()
    assert find("pack.inner.deep", place).code(place, ()) == before

    (place / "pack/__init__.py").write_text("changed = True")

    assert find("pack.inner.deep", place).code(place, ()) != before


def test_what_sources_name_is_code_beside_it(place: Path) -> None:
    alone = find("train", place).code(place, ())
    before = find("train", place).code(place, ("*.json",))
    (place / "table.json").write_text("[1]")

    assert len({alone, before, find("train", place).code(place, ("*.json",))}) == 3


def test_code_is_the_same_wherever_its_directory_is(place: Path, tmp_path: Path) -> None:
    before = [find(n, place).code(place, ("*.py",)) for n in ("train", "pack.inner.deep")]
    moved = place.rename(place.with_name("moved"))

    assert [find(n, moved).code(moved, ("*.py",)) for n in ("train", "pack.inner.deep")] == before
