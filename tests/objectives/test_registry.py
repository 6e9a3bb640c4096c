"""From a name and settings to an objective, and to a variant of it."""

import pytest

from objectives.api import ObjectiveSpec
from objectives.registry import load, varied


def test_a_variant_keeps_every_setting_it_does_not_change() -> None:
    spec = load(ObjectiveSpec(name="sphere", settings={"dimension": 3, "noise": 0.01})).spec
    changed = varied(spec, {"noise": 0.02})
    assert changed == load(ObjectiveSpec(name="sphere", settings=changed.settings)).spec
    assert changed.settings == spec.settings | {"noise": 0.02}
    assert spec.settings["noise"] == 0.01


def test_a_variant_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown sphere setting 'nose'.*Did you mean 'noise'\?"):
        varied(ObjectiveSpec(name="sphere"), {"nose": 0.02})
    with pytest.raises(ValueError, match="n_head 3 must divide n_embd 32"):
        varied(ObjectiveSpec(name="nanochat"), {"n_head": 3})
