"""Whether a training run was sound, judged by its losses and gradients."""

from torch import Tensor

WINDOW = 32  # steps before a loss that say what was to be expected
SPIKE = 6.0  # robust standard deviations above them
SPIKE_FLOOR = 0.1  # nats a loss must rise at least to be a spike
UNSTABLE_SHARE = 0.02  # of the steps being spikes
EXPLODING = 0.3  # nats the end lies above the lowest level on the way
TAIL = 5  # the last fifth of the steps is the end
MAD = 1.4826  # median absolute deviations in a normal's standard deviation


def diagnose(losses: Tensor, grad_norms: Tensor, max_grad_norm: float) -> dict[str, float]:
    """Figures and flags (0 or 1) on a run's `losses` (step) in nats and `grad_norms` (step)."""
    losses, grad_norms = losses.double().cpu(), grad_norms.double().cpu()
    end = losses[-max(1, len(losses) // TAIL) :]
    spikes = _spikes(losses)
    return {
        "train_loss_tail": end.mean().item(),
        "median_grad_norm": grad_norms.median().item(),
        "largest_grad_norm": grad_norms.max().item(),
        "clipped_share": (grad_norms > max_grad_norm).double().mean().item(),
        "loss_spikes": float(spikes),
        "unstable": float(spikes > UNSTABLE_SHARE * len(losses)),
        "exploding": float(end.mean() > _lowest_level(losses) + EXPLODING),
    }


def _spikes(losses: Tensor) -> int:
    """Steps whose loss stands out above the window before them."""
    if len(losses) <= WINDOW:
        return 0
    before = losses.unfold(0, WINDOW, 1)[:-1]
    median = before.median(1).values
    spread = MAD * (before - median[:, None]).abs().median(1).values
    rise = losses[WINDOW:] - median
    return int(((rise > SPIKE * spread) & (rise > SPIKE_FLOOR)).sum())


def _lowest_level(losses: Tensor) -> Tensor:
    """The lowest mean over as many steps as the end has, or the untrained loss if lower."""
    levels = losses.unfold(0, max(1, len(losses) // TAIL), 1).mean(1)
    return losses[0].minimum(levels.min())
