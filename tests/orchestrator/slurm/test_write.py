"""What `--write` does to a directory, and what it refuses to do."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

from orchestrator.slurm.tree import files_of
from orchestrator.slurm.write import write

if TYPE_CHECKING:
    from tests.orchestrator.slurm.conftest import Make

Written = Callable[..., Path]


def contents(place: Path) -> dict[str, tuple[bytes, int, int]]:
    return {
        str(path.relative_to(place)): (path.read_bytes(), path.stat().st_mode, path.stat().st_ino)
        for path in place.rglob("*")
        if path.is_file()
    }


def test_each_run_gets_a_directory_and_the_scripts_are_there(written: Written) -> None:
    place = written("a_s1", "a_s2")
    assert sorted(contents(place)) == [
        "README.md",
        "a_s1/config.toml",
        "a_s1/run.slurm",
        "a_s2/config.toml",
        "a_s2/run.slurm",
        "export.json",
        "manifest.json",
        "submit_all.sh",
    ]
    assert (place / "submit_all.sh").stat().st_mode & 0o111
    assert not (place / "a_s1" / "run.slurm").stat().st_mode & 0o111


def test_the_manifest_lists_the_matrix(written: Written) -> None:
    manifest = orjson.loads((written("a_s1", "b_s1") / "manifest.json").read_bytes())
    assert manifest["name"] == "camp"
    assert manifest["total_runs"] == 2
    assert manifest["conditions"] == ["a_s1", "b_s1"]
    assert manifest["seeds"] == [1]
    assert manifest["runs"][1]["name"] == "b_s1"
    assert (manifest["runs"][1]["seed"], manifest["runs"][1]["control"]) == (1, False)


def test_an_empty_directory_is_as_good_as_none(make: "Make") -> None:
    export = make("a")
    export.directory.mkdir()
    assert write(export.directory, files_of(export))


def test_writing_the_same_again_changes_nothing(make: "Make") -> None:
    export = make("a", "b")
    write(export.directory, files_of(export))
    before = contents(export.directory)
    assert not write(export.directory, files_of(export))
    assert not write(export.directory, files_of(export), replace=True)
    assert contents(export.directory) == before


def test_what_the_runs_have_left_there_is_no_difference(make: "Make") -> None:
    export = make("a")
    write(export.directory, files_of(export))
    (export.directory / "submitted.tsv").write_text("a\t1\tnow\n")
    (export.directory / "a" / "slurm-1.out").write_text("said")
    (export.directory / "manifest.json").write_text("{}")  # with how the runs stand
    assert not write(export.directory, files_of(export))


def test_a_directory_that_holds_other_things_is_left_alone(make: "Make") -> None:
    export = make("a")
    export.directory.mkdir()
    (export.directory / "thesis.tex").write_text("mine")
    for replace in (False, True):
        with pytest.raises(ValueError, match="holds other things"):
            write(export.directory, files_of(export), replace=replace)
    assert list(contents(export.directory)) == ["thesis.tex"]


@pytest.mark.parametrize(
    "manifest",
    ["", "[]", "{}", '{"kind": "campaign", "files": {}}', '{"kind": "slurm", "files": 1}'],
)
def test_another_file_of_that_name_makes_no_export_of_a_directory(
    make: "Make", manifest: str
) -> None:
    export = make("a")
    export.directory.mkdir()
    (export.directory / "export.json").write_text(manifest)
    with pytest.raises(ValueError, match="holds other things"):
        write(export.directory, files_of(export), replace=True)


def test_a_file_in_its_place_is_left_alone(make: "Make") -> None:
    export = make("a")
    export.directory.write_text("mine")
    with pytest.raises(ValueError, match="holds other things"):
        write(export.directory, files_of(export), replace=True)
    assert export.directory.read_text() == "mine"


def test_another_export_is_refused_and_the_difference_named(make: "Make") -> None:
    write(make("a", "b").directory, files_of(make("a", "b")))
    before = contents(make().directory)
    other = make("a", "c", partition="gpu")
    with pytest.raises(ValueError, match="--replace") as refused:
        write(other.directory, files_of(other))
    said = str(refused.value)
    assert "a/run.slurm: line 3 is '#SBATCH --time=02:00:00', not '#SBATCH --partition=gpu'" in said
    assert "c/run.slurm: is not there" in said
    assert "b/run.slurm: is no part of this export" in said
    assert contents(other.directory) == before


def test_replace_writes_over_an_export_that_was_never_submitted(make: "Make") -> None:
    write(make("a", "b").directory, files_of(make("a", "b")))
    other = make("a", "c", partition="gpu")
    assert write(other.directory, files_of(other), replace=True)
    assert not write(other.directory, files_of(other))
    assert not (other.directory / "b").exists()


def test_replace_keeps_what_it_did_not_write(make: "Make") -> None:
    write(make("a", "b").directory, files_of(make("a", "b")))
    (make().directory / "b" / "notes").write_text("mine")
    write(make("a").directory, files_of(make("a")), replace=True)
    assert [path.name for path in (make().directory / "b").iterdir()] == ["notes"]


@pytest.mark.parametrize("trace", ["submitted.tsv", "a/slurm-9.out", "a/campaign/run/ledger.jsonl"])
def test_an_export_whose_runs_have_begun_is_never_replaced(make: "Make", trace: str) -> None:
    place = make("a").directory
    write(place, files_of(make("a")))
    (place / trace).parent.mkdir(parents=True, exist_ok=True)
    (place / trace).write_text("a\t1\tnow\n")
    before = contents(place)
    with pytest.raises(ValueError, match=f"have begun \\({trace}"):
        write(place, files_of(make("a", partition="gpu")), replace=True)
    assert contents(place) == before


def test_a_change_by_hand_is_told_from_another_export(make: "Make") -> None:
    export = make("a")
    write(export.directory, files_of(export))
    script = export.directory / "a" / "run.slurm"
    script.write_text(script.read_text().replace("02:00:00", "03:00:00"))
    with pytest.raises(ValueError, match=r"run.slurm: line 3 .*changed by hand since"):
        write(export.directory, files_of(export))


def test_a_manifest_that_names_files_elsewhere_deletes_none(make: "Make", tmp_path: Path) -> None:
    export = make("a")
    write(export.directory, files_of(export))
    victim = tmp_path / "victim"
    victim.write_text("mine")
    manifest = export.directory / "export.json"
    document = orjson.loads(manifest.read_bytes())
    document["files"]["../victim"] = "0"
    manifest.write_bytes(orjson.dumps(document))
    with pytest.raises(ValueError, match="names files outside"):
        write(export.directory, files_of(export), replace=True)
    assert victim.read_text() == "mine"


def test_a_write_that_fails_leaves_nothing_behind(make: "Make", tmp_path: Path) -> None:
    export = make("a")
    files = dict(files_of(export))
    files[next(iter(files)) / "below-a-file"] = ""
    with pytest.raises(OSError, match=r"submit_all\.sh"):
        write(export.directory, files)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["manifest.json", "export.json", "README.md", "SUBMIT_ALL.sh", "submitted.tsv"]
)
def test_a_run_may_not_be_called_like_a_file_beside_it(make: "Make", name: str) -> None:
    with pytest.raises(ValueError, match="has that name"):
        files_of(make(name))
