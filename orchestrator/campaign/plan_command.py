"""`plan campaign FILE`: every run, what they take, and what is still open. Touches nothing."""

from pathlib import Path

from rich.markdown import Markdown

from budgets.plain import plain, printable
from orchestrator.campaign import matrix, outlook_text
from orchestrator.campaign.cells import campaign_name, campaign_of, terms_of
from orchestrator.campaign.outlook import outlook
from orchestrator.config.asked import Asked
from orchestrator.engine import devices_of
from orchestrator.terminal import console, print_json, print_line


def plan_campaign(asked: Asked) -> None:
    """Print what the campaign of a file would take."""
    resolved = asked.resolved
    if campaign_of(resolved).cell == "search":
        raise ValueError(
            f"{resolved.file} is a campaign of searches: what one of them takes is said by "
            f"orchestrator plan {resolved.search.phase} --config {resolved.file} --set ..., and "
            "there are as many as `explain` lists"
        )
    warnings = asked.request.objective.preflight()
    seen = outlook(
        terms_of(resolved),
        asked.request.objective,
        devices_of(asked.conduct.engine.slots()),
        Path(resolved.top.runs_dir),
        price_per_device_hour=resolved.budget.price_per_device_hour,
        max_concurrent=resolved.backend.max_concurrent,
    )
    if asked.conduct.as_json:
        print_json({**matrix.as_dict(resolved), **seen.as_dict()})
        return
    lines = [
        f"# Campaign {plain(campaign_name(resolved))} of {resolved.top.objective}",
        "",
        *matrix.to_markdown(resolved),
        "",
        *outlook_text.to_markdown(seen),
    ]
    console().print(Markdown("\n".join(lines)))
    for warning in warnings:
        print_line(printable(f"Warning: {warning}."))
