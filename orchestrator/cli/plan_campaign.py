"""`plan FILE`: every run, what they take, and what is still open. Touches nothing."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from budgets.plain import plain, printable
from orchestrator.campaign import matrix, outlook_text, questions, search_outlook
from orchestrator.campaign.cells import campaign_name, campaign_of, terms_of
from orchestrator.campaign.outlook import outlook
from orchestrator.campaign.request import CampaignRequest
from orchestrator.campaign.searches import search_cells
from orchestrator.cli.terminal import print_json, print_line, print_markdown
from orchestrator.execution.engine import devices_of
from orchestrator.planning.circumstances import circumstances
from orchestrator.planning.configured import Asked


def plan_campaign(asked: Asked) -> None:
    """Print what the campaign of a file would take."""
    resolved = asked.resolved
    warnings = asked.request.objective.preflight()
    is_of_searches = campaign_of(resolved).cell == "search"
    document, lines = _of_searches(asked) if is_of_searches else _of_trainings(asked)
    if asked.conduct.as_json:
        print_json({**matrix.as_dict(resolved), **document})
        return
    title = f"# Campaign {plain(campaign_name(resolved))} of {resolved.objective}"
    page = [title, "", *matrix.to_markdown(resolved), "", *lines]
    print_markdown("\n".join(page))
    for warning in warnings:
        print_line(printable(f"Warning: {warning}."))


Page = tuple[dict[str, Any], Iterator[str] | list[str]]


def _of_searches(asked: Asked) -> Page:
    cells = search_cells(asked.resolved)
    searches = list(search_outlook.expected_searches(cells, asked.conduct.engine.slots()))
    return search_outlook.as_dict(searches), search_outlook.to_markdown(searches)


def _of_trainings(asked: Asked) -> Page:
    resolved, root = asked.resolved, asked.conduct.root
    devices, terms = devices_of(asked.conduct.engine.slots()), terms_of(resolved)
    seen = outlook(
        terms,
        asked.request.objective,
        devices,
        root,
        price_per_device_hour=resolved.budget.price_per_device_hour,
        max_concurrent=resolved.backend.max_concurrent,
        assumed_seconds=asked.assumed_seconds,
    )
    under, _ = circumstances(root, asked.request.objective, devices, asked.assumed_seconds)
    plan = CampaignRequest(asked.request, terms).plan(devices, under.basis.calibration)
    items = questions.questions(seen, plan, under.basis, root, datetime.now(UTC))
    document = {**seen.as_dict(), "checklist": [item._asdict() for item in items]}
    return document, [*outlook_text.to_markdown(seen), "", *questions.to_markdown(items)]
