"""What is measured beside a search is found by its name: one that changes loses its run."""

from collections.abc import Callable
from typing import Any

import pytest

from budgets.plan import CampaignTerms, Condition, Devices, Plan, Window
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.matrix.campaign import CampaignRequest
from orchestrator.matrix.knobs import KnobCheck
from orchestrator.matrix.proxy import Near, ProxyCheck
from orchestrator.plan.resolve import calibration_plan
from tests.asking import config_for

DEVICES = Devices(count=2, kind="cpu", name="some", threads=1, memory_bytes=1 << 30)
SPHERE = registry.load(ObjectiveSpec(name="sphere", settings={"dimension": 3}))
CENTRE, HEAD = (0.5, 0.25, 0.125), "0" * 32
WITHIN: dict[str, Any] = {
    "evaluation_seed": 5,
    "limit_seconds": 50.0,
    "stall_seconds": 5.0,
    "max_evals": 64,
    "max_device_hours": 2.0,
    "max_hours": 1.5,
    "max_cost": 3.0,
    "window": Window(hours=12.0, margin_seconds=60.0),
    "price_per_device_hour": 0.25,
}


def calibration(**within: Any) -> Plan:
    return calibration_plan(config_for("phase1", "target", SPHERE, **within), DEVICES, 8)


def check(**within: Any) -> Plan:
    request = KnobCheck(config_for("check", "min", SPHERE, **within), 8, ("x0", "x2"))
    return request.plan(DEVICES, None)


def proxy(near: Near | None = None, **within: Any) -> Plan:
    terms = config_for("check", "min", SPHERE, **within)
    return ProxyCheck(terms, 0.25, 8, 2, near).plan(DEVICES, None)


def proxy_near(**within: Any) -> Plan:
    return proxy(Near("some-run", HEAD, CENTRE, 0.15), **within)


def campaign(**within: Any) -> Plan:
    conditions = tuple(
        Condition(name=name, settings={"noise": noise}, knobs={}, point=None, length=1.0)
        for name, noise in (("calm", 0.01), ("loud", 0.02))
    )
    terms = CampaignTerms(name="noises", conditions=conditions, seeds=(1, 2))
    request = CampaignRequest(config_for("campaign", "min", SPHERE, **within), terms)
    return request.plan(DEVICES, None)


@pytest.mark.parametrize(
    ("planned", "within", "name"),
    [
        (calibration, {}, "sphere-c37447273e-cpu-a6031e-13b9cd"),
        (calibration, WITHIN, "sphere-c37447273e-cpu-a6031e-c7dadd"),
        (check, {}, "sphere-c37447273e-cpu-b98b4e"),
        (check, WITHIN, "sphere-c37447273e-cpu-f5db1f"),
        (proxy, {}, "proxy-sphere-c37447273e-cpu-5a8058"),
        (proxy, WITHIN, "proxy-sphere-c37447273e-cpu-e02d5d"),
        (proxy_near, WITHIN, "proxy-sphere-c37447273e-cpu-6182b9"),
        (campaign, WITHIN, "noises"),
    ],
)
def test_a_name_is_what_it_has_always_been(
    planned: Callable[..., Plan], within: dict[str, Any], name: str
) -> None:
    assert planned(**within).run_id == name
