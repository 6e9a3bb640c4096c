"""A ledger told record by record, from wherever the last follower came to."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

from budgets.events import Settled
from budgets.ledger.chain import LEDGER, read
from budgets.ledger.head import HEAD
from orchestrator.records.recorded import load_state
from orchestrator.trackers import follow
from orchestrator.trackers.figures import Figures
from orchestrator.trackers.follow import Follower
from orchestrator.trackers.place import Place
from orchestrator.trackers.pressure import SIGNALS
from orchestrator.trackers.sink import Beginning
from orchestrator.trackers.terms import summary

if TYPE_CHECKING:
    from tests.orchestrator.trackers.conftest import Notebook

AllFigures = Callable[[Path], list[Figures]]


def place_of(run: Path) -> Place:
    place = Place(run, "tensorboard")
    place.make()
    return place


def tell(run: Path, notebook: "Notebook", *looks: bool) -> None:
    """Follow as long as `looks` say, then once more."""
    answers = iter(looks)
    follower = Follower(place_of(run), lambda: notebook, {})
    follower.follow(lambda seconds: next(answers, False) if seconds else bool(looks))


def grows(run: Path, sizes: Iterator[int]) -> Callable[[float], bool]:
    """The run's ledger grows to the next size whenever it is waited for."""
    whole = (run / LEDGER).read_bytes()
    (run / LEDGER).write_bytes(b"")
    (run / HEAD).unlink()  # which says how long it was

    def more(seconds: float) -> bool:
        if not seconds:
            return True
        size = next(sizes, len(whole))
        (run / LEDGER).write_bytes(whole[:size])
        return True

    return more


def test_a_finished_run_is_told_from_end_to_end(
    tracked: Path, notebook: "Notebook", all_figures: AllFigures
) -> None:
    tell(tracked, notebook)
    state = load_state(tracked)
    assert notebook.told == all_figures(tracked)
    assert notebook.summaries == [(summary(state, {}), True)]
    (beginning,) = notebook.beginnings
    assert (beginning.key, beginning.told, beginning.tier) == (state.genesis, 0, "min")
    assert beginning.directory == tracked / "trackers/tensorboard"


def test_a_run_that_goes_on_is_told_as_it_grows_until_it_is_over(
    tracked: Path, notebook: "Notebook", all_figures: AllFigures
) -> None:
    whole = len((tracked / LEDGER).read_bytes())
    wanted = all_figures(tracked)
    Follower(place_of(tracked), lambda: notebook, {}).follow(
        grows(tracked, iter(range(100, whole, 997)))
    )
    assert notebook.told == wanted
    assert [is_over for _, is_over in notebook.summaries] == [True]
    assert len(notebook.batches) > 10


def test_nothing_is_told_twice_when_nothing_is_new(tracked: Path, notebook: "Notebook") -> None:
    tell(tracked, notebook)
    before = list(notebook.told)
    tell(tracked, notebook)
    tell(tracked, notebook, True, True)
    assert notebook.told == before
    assert (len(notebook.beginnings), len(notebook.summaries)) == (1, 1)


@pytest.mark.parametrize(("batch", "known"), [(1, 0), (2, 4), (3, 8), (4, 11), (5, 15)], ids=str)
def test_after_a_death_the_same_is_told_and_nothing_twice(
    tracked: Path,
    notebook: "Notebook",
    all_figures: AllFigures,
    monkeypatch: pytest.MonkeyPatch,
    batch: int,
    known: int,
) -> None:
    """Of 18 records, in batches of 4, up to the evaluation that is `known`."""
    monkeypatch.setattr(follow, "BATCH", 4)
    notebook.fails_at_batch = batch
    with pytest.raises(RuntimeError, match="no more"):
        tell(tracked, notebook)
    assert len(notebook.told) == 4 * (batch - 1)
    tell(tracked, notebook)
    assert notebook.told == all_figures(tracked)
    assert notebook.beginnings[-1].told == known


def test_a_sink_that_begins_anew_is_told_all_again(
    tracked: Path, notebook: "Notebook", all_figures: AllFigures, cut: Callable[..., None]
) -> None:
    whole = (tracked / LEDGER).read_bytes()
    cut(tracked, 20)
    tell(tracked, notebook)
    (tracked / LEDGER).write_bytes(whole)
    begin = notebook.begin

    def anew(run: Beginning) -> int:
        begin(run)
        notebook.told = []
        return 0

    notebook.begin = anew  # type: ignore[method-assign]
    tell(tracked, notebook)
    assert notebook.told == all_figures(tracked)


def test_a_run_that_is_not_over_ends_for_now_and_goes_on_later(
    tracked: Path, notebook: "Notebook", all_figures: AllFigures, cut: Callable[..., None]
) -> None:
    whole = (tracked / LEDGER).read_bytes()
    cut(tracked, 20)
    tell(tracked, notebook)
    ((said, is_over),) = notebook.summaries
    assert (is_over, said["decision"]) == (False, "continue")
    (tracked / LEDGER).write_bytes(whole)
    tell(tracked, notebook)
    assert notebook.told == all_figures(tracked)
    assert notebook.summaries[-1][1]


def test_a_ledger_that_was_rolled_back_is_told_from_its_beginning(
    tracked: Path, notebook: "Notebook", cut: Callable[..., None], all_figures: AllFigures
) -> None:
    tell(tracked, notebook)
    cut(tracked, 20)
    tell(tracked, notebook)
    assert notebook.beginnings[-1].told == 0
    assert notebook.told == all_figures(tracked)


def test_another_runs_ledger_is_told_from_its_beginning(
    tracked: Path, confirmed_run: Path, notebook: "Notebook", all_figures: AllFigures
) -> None:
    tell(tracked, notebook)
    for name in (LEDGER, HEAD):
        (tracked / name).write_bytes((confirmed_run / name).read_bytes())
    tell(tracked, notebook)
    assert [beginning.told for beginning in notebook.beginnings] == [0, 0]
    assert notebook.told == all_figures(confirmed_run)


def test_a_ledger_that_is_replaced_while_it_is_told_ends_the_telling(
    tracked: Path, confirmed_run: Path, notebook: "Notebook", cut: Callable[..., None]
) -> None:
    cut(tracked, 20)

    def more(seconds: float) -> bool:
        if seconds:
            (tracked / "other").write_bytes((confirmed_run / LEDGER).read_bytes())
            (tracked / "other").rename(tracked / LEDGER)
        return True

    with pytest.raises(ValueError, match="another ledger has taken the place"):
        Follower(place_of(tracked), lambda: notebook, {}).follow(more)


def test_nobody_is_told_of_a_ledger_without_a_record(tmp_path: Path, notebook: "Notebook") -> None:
    tell(tmp_path, notebook, True, True)
    assert not notebook.beginnings


def test_who_watches_ends_with_a_run_that_nobody_carries_out(
    tracked: Path,
    notebook: "Notebook",
    cut: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It seems to go on as long as the process that had it lives."""
    cut(tracked, 20)
    gone, waited = iter([False, False, True]), list[float]()

    def more(seconds: float) -> bool:
        waited.append(seconds)
        return len(waited) < 100

    monkeypatch.setattr("orchestrator.records.standing.owner_is_gone", lambda _: next(gone))
    Follower(place_of(tracked), lambda: notebook, {}).follow(more, watch=True)
    assert waited.count(follow.POLL_SECONDS) == 3
    assert [is_over for _, is_over in notebook.summaries] == [False]


def test_signals_that_are_written_after_their_record_are_told_all_the_same(
    tracked: Path, notebook: "Notebook"
) -> None:
    records = read(tracked / LEDGER).records
    settled = [r for r in records if isinstance(r.event, Settled)]
    names = ("panel", "generation", "candidate", "seed", "attempt")
    lines = [
        orjson.dumps({**{n: getattr(r.event, n) for n in names}, "bp_allowed": at}) + b"\n"
        for at, r in enumerate(settled)
    ]
    whole, ends = (tracked / LEDGER).read_bytes(), iter(r.end for r in settled)
    written = iter(range(len(lines)))

    def more(seconds: float) -> bool:
        if seconds:  # the record of each attempt, and the signals of the one before it
            (tracked / SIGNALS).write_bytes(b"".join(lines[: next(written, len(lines))]))
            (tracked / LEDGER).write_bytes(whole[: next(ends, len(whole))])
        return True

    (tracked / LEDGER).write_bytes(b"")
    (tracked / HEAD).unlink()
    Follower(place_of(tracked), lambda: notebook, {}).follow(more)
    allowed = {
        one.step: v for one in notebook.told if (v := one.values.get("bp_allowed")) is not None
    }
    assert allowed == {step + 1: step for step in range(len(settled))}
    assert [one.step for one in notebook.told] == sorted(one.step for one in notebook.told)
