"""What is known of an evaluation, in words."""

from collections.abc import Sequence
from statistics import median

from budgets.calibration import ONE_SCORE, EvalSeconds, Noise, eval_seconds, noise
from budgets.plain import PROGRAM, plain
from budgets.plan import Calibration, Sample
from budgets.words import counted, in_bytes
from orchestrator.planning.times import Times


def in_short(times: Times) -> str:
    """How long an evaluation takes, and who says so, in a line."""
    calibration = times.calibration
    if calibration is None:
        return (
            f"Not calibrated here, so no times. Measure with `{PROGRAM} calibrate` and the same "
            "--objective and --set, or say `--assume-eval-seconds X`."
        )
    if times.prior is not None:
        return (
            f"**Estimated, not calibrated here**: {plain(times.prior.sentence())}. The run "
            "calibrates first."
        )
    if times.origin == "assumed":
        return f"**Assumed, not measured**: {calibration.median_seconds:g} s an evaluation."
    return f"**Measured here:** {_took(calibration)}"


def times_lines(times: Times) -> list[str]:
    """Where times and noise come from; first of all whether anybody measured them here."""
    calibration = times.calibration
    if calibration is None:
        return [in_short(times)]
    notes = [f"Note: {plain(note)}." for note in times.notes]
    if times.origin != "measured":
        return [in_short(times), "", *(f"- {one}" for one in (_beside(times), *notes))]
    lines = [*calibration_lines(calibration), _beside(times), *notes]
    return ["**Measured here:**", "", *(f"- {one}" for one in lines)]


def _beside(times: Times) -> str:
    own = times.overheads

    def marked(name: str) -> str:
        return " (assumed)" if name in own.assumed else ""

    return (
        f"Beside the evaluations: {own.startup_seconds:.1f} s until the first one may begin"
        f"{marked('start-up')}, {own.gap_seconds:.2g} s of a device for each"
        f"{marked('gap')}, {own.generation_seconds:.2g} s between generations"
        f"{marked('between generations')}."
    )


def calibration_lines(calibration: Calibration) -> list[str]:
    """A measured calibration in words."""
    samples = calibration.samples
    lines = [_took(calibration)]
    if trained := _trained(samples):
        lines.append(trained)
    measured = noise(calibration)
    assert measured is not None
    return [*lines, _spread(measured), _failures(measured)]


def _took(calibration: Calibration) -> str:
    samples, took = calibration.samples, eval_seconds(calibration)
    startup = median(s.startup_seconds for s in samples)
    training = median(s.train_seconds for s in samples)
    return (
        f"An evaluation takes {_seconds(took.median)} s (median of {len(samples)}"
        f"{_reach(took)}): start-up {startup:.2f} s, training {_seconds(training)} s. "
        f"One device does {3600 / took.median:.0f} an hour."
    )


def _reach(took: EvalSeconds) -> str:
    """Nothing where all took the same, as far as is shown."""
    low, high = _seconds(took.min), _seconds(took.max)
    return "" if low == high else f"; {low} to {high} s, nine in ten within {_seconds(took.p90)} s"


def _seconds(value: float) -> str:
    return f"{value:.1f}" if value >= 1 else f"{value:.3g}"


def _trained(samples: Sequence[Sample]) -> str:
    """What an evaluation does of steps, tokens and FLOPs, as far as its objective tells."""
    steps = round(median(s.steps for s in samples))
    if not steps:
        return ""
    rates = [s.tokens / s.train_seconds for s in samples if s.train_seconds]
    rate = median(rates) if rates else 0.0
    flops = median(s.train_flops for s in samples)
    evaluation = median(s.eval_flops for s in samples)
    memory = max(s.peak_memory_bytes for s in samples)
    scored = f" (and {evaluation:.3g} to score)" if evaluation else ""
    done = (
        counted(steps, "step"),
        f"{rate:,.0f} tokens a second" if rate else "",
        f"{flops:.3g} FLOPs{scored}" if flops else "",
    )
    return f"It trains {', '.join(filter(None, done))}, in {in_bytes(memory)} at most."


def _spread(of: Noise) -> str:
    if of.sd is None or of.sd_low is None or of.sd_high is None:
        return f"The baseline scores {of.mean:.5g}, on one seed."
    if of.is_about_zero:
        return (
            f"The baseline scores {of.mean:.3g}, sd {of.sd:.3g} over {of.seeds} seeds. That cannot "
            "be told from 0, and a gain is a share of it: no search of it can end in a verdict."
        )
    if of.sd == 0:
        return f"The baseline scores {of.mean:.5g} on each of {of.seeds} seeds: {ONE_SCORE}."
    share, low, high = (sd / abs(of.mean) for sd in (of.sd, of.sd_low, of.sd_high))
    return (
        f"The baseline scores {of.mean:.5g}, sd {of.sd:.3g} over {of.seeds} seeds ({share:.2%}; "
        f"95% interval {low:.2%} to {high:.2%}). So far the seed alone moves a score: two "
        "that differ by no more may be equally good."
    )


def _failures(of: Noise) -> str:
    failed, total = of.failed or "None", of.seeds + of.failed
    return (
        f"{failed} of {total} evaluations of the baseline failed ({of.failure_rate:.1%}; 95% "
        f"interval {of.failure_low:.1%} to {of.failure_high:.1%})."
    )
