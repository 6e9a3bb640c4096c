"""The ten synaptic knobs: what they mean, where they may lie, and where a search starts."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

from objectives.space import Knob, SearchSpace

SPACE = SearchSpace(
    knobs=(
        Knob(name="tau_c", kind="linear", low=0.70, high=0.99, baseline=0.85),
        Knob(name="alpha_c", kind="linear", low=0.10, high=1.00, baseline=0.50),
        Knob(name="init_rrp", kind="linear", low=1.0, high=18.0, baseline=6.0),
        Knob(name="prime_rate", kind="linear", low=0.01, high=0.20, baseline=0.05),
        Knob(name="rec_rate", kind="linear", low=0.01, high=0.20, baseline=0.05),
        Knob(name="lambda_loge", kind="linear", low=0.0, high=4.0, baseline=0.5),
        Knob(name="barrier_strength", kind="linear", low=0.0, high=0.5, baseline=0.1),
        Knob(name="stochastic_train_frac", kind="linear", low=0.0, high=0.4, baseline=0.1),
        Knob(name="post_fast_lr", kind="log10", low=-4.5, high=-2.0, baseline=1e-3),
        Knob(name="post_slow_lr", kind="log10", low=-5.5, high=-3.0, baseline=1e-4),
    )
)


@dataclass(frozen=True)
class SynapticKnobs:
    """One candidate's values. Rates are per query token; pools are in vesicles."""

    tau_c: float  # what one token leaves of the calcium
    alpha_c: float  # calcium that a full drive lets in
    init_rrp: float  # places for vesicles ready for release
    prime_rate: float  # of filling an empty place, were all vesicles in reserve
    rec_rate: float  # of a spent vesicle's return to the reserve
    lambda_loge: float  # weight of log(release) in the attention logits
    barrier_strength: float  # logits subtracted per block of distance
    stochastic_train_frac: float  # share of the edges that release at random in training
    post_fast_lr: float  # post-synaptic gain, forgetting, per block of tokens
    post_slow_lr: float  # post-synaptic gain, lasting, per block of tokens

    @classmethod
    def from_mapping(cls, knobs: Mapping[str, float]) -> Self:
        """The candidate `knobs` names. Raises ValueError unless exactly the ten are given."""
        names = {field.name for field in fields(cls)}
        if set(knobs) != names:
            missing, unknown = sorted(names - set(knobs)), sorted(set(knobs) - names)
            raise ValueError(
                f"nanochat needs its ten synaptic knobs: missing {missing}, unknown {unknown}"
            )
        return cls(**{name: float(knobs[name]) for name in names})
