"""What a function may answer with, and what is no answer."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy
import pytest
import torch

from objectives.api import Measurement, NoScoreError
from objectives.function.returned import measurement_of


@pytest.mark.parametrize(
    "value",
    [
        *(1, 1.0, Fraction(1), numpy.float32(1), numpy.int64(1), numpy.array(1.0)),
        *(torch.tensor(1.0), torch.tensor(1.0, requires_grad=True)),
        *({"score": 1}, {"score": numpy.float32(1)}, {"score": torch.tensor(1.0)}),
    ],
)
def test_a_number_in_any_clothes_is_a_score(value: object) -> None:
    assert measurement_of(value, 2.5) == Measurement(score=1.0, train_seconds=2.5)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, {"score": math.nan}])
def test_what_is_not_finite_is_a_score_for_the_runner_to_judge(value: object) -> None:
    assert not math.isfinite(measurement_of(value, 0.0).score)


def test_a_measurement_is_taken_as_it_is() -> None:
    measured = Measurement(score=2.0, steps=7, metrics={"loss": 3.0})

    assert measurement_of(measured, 9.0) is measured


def test_a_mapping_has_the_fields_of_a_measurement() -> None:
    said = {"score": 2, "train_flops": 1e9, "steps": 5, "train_seconds": 1.5, "metrics": {"a": 1}}

    found = measurement_of(said, 9.0)

    assert found == Measurement(
        score=2.0, train_flops=1e9, steps=5, train_seconds=1.5, metrics={"a": 1.0}
    )


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "returned None: expected a number, a Measurement, or a mapping"),
        ("0.5", "returned '0.5': expected a number"),
        (b"0.5", "returned bytes: expected a number"),
        (True, "returned True: expected a number"),
        (numpy.bool_(True), "returned bool: expected a number"),
        (1j, "returned complex: expected a number"),
        (Decimal(1), "returned Decimal: expected a number"),
        ([0.5], "returned list: expected a number"),
        (torch.zeros(2), "returned Tensor: expected a number"),
        (10**400, "a number that no float can hold"),
        ("x" * 1000, "returned 'xxxxxxxxxxxx"),
        ({}, "a mapping: score: it has to be given"),
        ({"score": "0.5"}, "a mapping: score: expected a number, got str"),
        ({"score": True}, "a mapping: score: expected a number, got bool"),
        ({"score": None}, "a mapping: score: "),
        ({"score": 1, "loss": 2}, "a mapping: loss: Extra inputs are not permitted"),
        ({"score": 1, "steps": -1}, "a mapping: steps: "),
        ({"score": 1, "metrics": {"a": "b"}}, r"a mapping: metrics.a: "),
    ],
)
def test_what_is_no_score_is_refused_by_name(value: Any, said: str) -> None:
    with pytest.raises(NoScoreError, match=said) as refused:
        measurement_of(value, 0.0)
    assert len(str(refused.value)) < 200
