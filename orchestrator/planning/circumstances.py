"""What a plan is made under: what is known of this place and of the knobs."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from budgets.fold import ImpossibleEventError
from budgets.ledger.chain import LedgerCorruptError
from budgets.terms import Devices
from objectives.api import Objective
from orchestrator.planning.known_knobs import Known, known_knobs
from orchestrator.planning.plan import Succession
from orchestrator.planning.times import times_with_gaps

if TYPE_CHECKING:
    from orchestrator.planning.page import Circumstances


def circumstances(
    root: Path,
    objective: Objective,
    devices: Devices,
    assumed_seconds: float | None = None,
    succession: Succession | None = None,
) -> "tuple[Circumstances, tuple[str, ...]]":
    """What a plan is made under; and warnings of what could not be read for it."""
    from orchestrator.planning.basis import basis_of
    from orchestrator.planning.page import Circumstances

    basis, unread = basis_of(root, objective, devices, assumed_seconds), tuple[str, ...]()
    try:
        known = known_knobs(root, objective, devices.kind)
    except (LedgerCorruptError, ImpossibleEventError, ValueError) as error:
        unread = (str(error),)
        known = Known((), (), tuple(knob.name for knob in objective.space.knobs))
    times = times_with_gaps(root, objective, devices, assumed_seconds)
    now = datetime.now(UTC)
    return Circumstances(devices, basis, root, known, now, succession, times), unread
