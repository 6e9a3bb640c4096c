"""What a search takes over from an earlier run: the run it names, or what is on record of that."""

from pathlib import Path
from typing import Any

from budgets.terms import Inherited, Plan
from orchestrator.planning.plan import Succession
from orchestrator.planning.request import Request, method_of
from orchestrator.warm.distribution import scale_again
from orchestrator.warm.follow import follow
from orchestrator.warm.predecessor import Predecessor
from orchestrator.warm.start import find_start


def predecessor(root: Path, request: Request, kind: str) -> Predecessor | None:
    """The run that `request` follows or starts from; None where it begins at the baseline.

    For a search on that kind of device. Raises ValueError where the run gives nothing.
    """
    if request.follows is not None:
        return follow(root, request, request.follows, kind)
    return None if request.warm_start is None else find_start(root, request, request.warm_start)


def foreseen(root: Path, request: Request, kind: str) -> Succession | None:
    """What the search would take over, as far as the records tell without replaying them."""
    earlier = predecessor(root, request, kind)
    return None if earlier is None else earlier.foreseen(request)


def again(request: Request, recorded: Plan) -> Succession | None:
    """What the recorded run took over, under the names asked for now.

    The run it took that from may be gone since, or have gone on. A warm start of a run that began
    without one is another plan, and that is all there is to say.
    """
    search, source, start = recorded.search, recorded.source, request.warm_start
    if search is None:
        return None
    terms: dict[str, Any] = {"method": method_of(request), "seed": request.search_seed}
    if source is not None and request.follows is not None:
        unlearned = source.added
        asked = {"run_id": _named(request.follows.run), "variant": request.follows.variant}
        source = source.model_copy(update=asked)
    else:
        none = None if start is None else Inherited(run_id="", head="")
        if (inherited := search.inherited or none) is None:
            return None
        source, unlearned = None, inherited.unlearned
        named = None if start is None else inherited.model_copy(update={"run_id": _named(start)})
        terms["inherited"] = named
    terms["sigma0"] = scale_again(request.sigma0, recorded, search, unlearned)
    return Succession(source, search.model_copy(update=terms))


def _named(run: str) -> str:
    """The id of a run that is named by that or by its directory."""
    return Path(run).resolve().name
