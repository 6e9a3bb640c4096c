"""`plan FILE` of a campaign: every run, what they take, and what is still open. Writes nothing."""

from datetime import UTC, datetime

from budgets.plain import plain, printable
from orchestrator.campaign.conditions import campaign_name
from orchestrator.campaign.plan import campaign_plan, runs_document, runs_page
from orchestrator.cli.given import Asked
from orchestrator.cli.terminal import print_json, print_line, print_markdown


def plan_campaign(asked: Asked) -> None:
    """Print what the campaign of a file would take."""
    config = asked.config
    warnings = config.tuned.preflight()
    document, lines = campaign_plan(config, datetime.now(UTC))
    if asked.as_json:
        print_json({**runs_document(config), **document})
        return
    title = f"# Campaign {plain(campaign_name(config))} of {config.objective}"
    print_markdown("\n".join([title, "", *runs_page(config), "", *lines]))
    for warning in warnings:
        print_line(printable(f"Warning: {warning}."))
