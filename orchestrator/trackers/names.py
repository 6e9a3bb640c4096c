"""Which trackers there are, without importing any."""

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args

from budgets.plain import command, shell_word
from orchestrator.trackers.place import Place

Tracker = Literal["tensorboard", "wandb", "mlflow"]
"""A tracker by the name of its library, which is that of its extra too."""

TRACKERS: tuple[Tracker, ...] = get_args(Tracker)

_REMOTE: dict[str, str] = {"wandb": "WANDB_MODE", "mlflow": "MLFLOW_TRACKING_URI"}


def known(names: Iterable[str]) -> tuple[Tracker, ...]:
    """The trackers of these names, each once. Raises ValueError on another name."""
    given = dict.fromkeys(names)
    for name in given:
        if name not in TRACKERS:
            raise ValueError(f"--to: expected {', '.join(TRACKERS)}, got {name!r}")
    return tuple(name for name in TRACKERS if name in given)


def refuse_missing(names: Iterable[str], flag: str = "--track") -> None:
    """Raises ValueError, naming the extra, where a tracker's library is not installed."""
    for name in names:
        if not is_installed(name):
            raise ValueError(
                f"{flag} {name}: {name} is not installed. Get it with: "
                f"pip install 'cmaes-orchestrator[{name}]'"
            )


def is_installed(name: str) -> bool:
    """Whether there is such a library; a directory of that name that lies about is none."""
    found = find_spec(name)
    return found is not None and found.origin is not None


def elsewhere(name: str, environment: Mapping[str, str]) -> str | None:
    """The variable by which a person sends the figures elsewhere than into the run's directory."""
    variable = _REMOTE.get(name, "")
    value = environment.get(variable)
    if value is None or (name == "wandb" and value in ("offline", "dryrun", "disabled")):
        return None
    return variable


def view(place: Place, environment: Mapping[str, str]) -> str:
    """The command that shows, or sends off, what the tracker was told."""
    if (variable := elsewhere(place.name, environment)) is not None:
        return f"where {variable} says"
    files = place.files.absolute()
    match place.name:
        case "wandb":
            return f"wandb sync {shell_word(str(files))}/offline-run-*"
        case "mlflow":
            store = shell_word(files.as_uri())
            return f"MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri {store}"
        case _:
            return f"{place.name} --logdir {shell_word(str(files))}"


def tell_later(run: Path, name: str) -> str:
    """The command that tells a tracker of a run, now or again."""
    return command("track", str(run), "--to", name)
