"""What a search may move: groups of the configuration's own fields, with their ranges.

A knob starts where the configuration has the field, so that a search can begin at an earlier
winner. Groups are joined with "+": `space = "synaptic+optimizer"`.
"""

from collections.abc import Callable

from pydantic import ValidationError

from objectives.nanochat.config import NanochatConfig
from objectives.settings import in_words, unknown
from objectives.space import Kind, Knob, SearchSpace

Range = tuple[str, Kind, float, float]

SYNAPTIC: tuple[Range, ...] = (
    ("tau_c", "linear", 0.70, 0.99),
    ("alpha_c", "linear", 0.10, 1.00),
    ("init_rrp", "linear", 1.0, 18.0),
    ("prime_rate", "linear", 0.01, 0.20),
    ("rec_rate", "linear", 0.01, 0.20),
    ("lambda_loge", "linear", 0.0, 4.0),
    ("barrier_strength", "linear", 0.0, 0.5),
    ("stochastic_train_frac", "linear", 0.0, 0.4),
    ("post_fast_lr", "log10", -4.5, -2.0),
    ("post_slow_lr", "log10", -5.5, -3.0),
)
OPTIMIZER: tuple[Range, ...] = (
    ("matrix_lr", "log10", -3.0, -0.7),
    ("embedding_lr", "log10", -2.0, 0.3),
    ("unembedding_lr", "log10", -3.4, -0.7),
    ("weight_decay", "linear", 0.0, 0.5),
    ("momentum", "sigmoid01", 0.8, 4.6),  # 0.69 to 0.99
    ("adam_beta1", "linear", 0.5, 0.95),
    ("adam_beta2", "sigmoid01", 0.8, 6.9),  # 0.69 to 0.999
    ("warmup_ratio", "linear", 0.0, 0.4),
    ("warmdown_ratio", "linear", 0.0, 1.0),
)


def _named(ranges: tuple[Range, ...]) -> Callable[[NanochatConfig], tuple[Knob, ...]]:
    def knobs(config: NanochatConfig) -> tuple[Knob, ...]:
        return tuple(
            Knob(name=name, kind=kind, low=low, high=high, baseline=getattr(config, name))
            for name, kind, low, high in ranges
        )

    return knobs


def _shape(config: NanochatConfig) -> tuple[Knob, ...]:
    """Depth and width from half to twice the configured, in whole pairs of channels a head."""
    step, width = 2 * config.n_head, config.n_embd
    return (
        Knob(
            name="n_layer",
            kind="int",
            low=max(1, config.n_layer // 2),
            high=2 * config.n_layer,
            baseline=config.n_layer,
        ),
        Knob(
            name="n_embd",
            kind="int",
            low=width - width // 2 // step * step,
            high=2 * width,
            step=step,
            baseline=width,
        ),
    )


GROUPS: dict[str, Callable[[NanochatConfig], tuple[Knob, ...]]] = {
    "synaptic": _named(SYNAPTIC),
    "optimizer": _named(OPTIMIZER),
    "shape": _shape,
}


def named(config: NanochatConfig) -> list[str]:
    """The groups that `config.space` names, known or not; without one, the model's own."""
    default = "synaptic" if config.model == "synaptic" else "optimizer"
    return [name.strip() for name in (config.space or default).split("+")]


def space(config: NanochatConfig) -> SearchSpace:
    """The knobs of `config.space`; without one, what the model has to tune.

    Raises ValueError on an unknown group, or on a start outside a knob's range.
    """
    names = named(config)
    for name in names:
        if name not in GROUPS:
            raise unknown("search group", name, GROUPS)
        if name == "synaptic" and config.model == "gpt" and not config.control:
            raise ValueError('space "synaptic" has nothing to move in model "gpt"')
    try:
        return SearchSpace(knobs=tuple(knob for name in names for knob in GROUPS[name](config)))
    except ValidationError as error:
        raise ValueError(f"space {'+'.join(names)}: {in_words(error)}") from error
