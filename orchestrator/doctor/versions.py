"""Whether the installed packages are those that the project asks for."""

import shlex
import sys
from collections.abc import Callable, Iterable, Sequence

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from orchestrator.doctor.asking import Answer, Ask, NoAnswerError
from orchestrator.doctor.finding import Finding

NAMED = ("torch", "ray", "cma", "numpy")
"""Those whose version decides the last bits of points and scores: each has a finding of its own."""

PYPI = "https://pypi.org/simple"  # whose torch for Linux brings CUDA


def pip(arguments: str) -> str:
    """The command that installs into the environment of this very interpreter."""
    return f"{shlex.quote(sys.executable)} -m pip install {arguments}"


def required(lines: Iterable[str]) -> tuple[Requirement, ...]:
    """What is needed by everybody: requirements under a condition (extras) are left out."""
    return tuple(one for one in map(Requirement, lines) if one.marker is None)


def python(version: str, bound: str | None, checkout: str) -> Finding:
    """This interpreter against `Requires-Python`; None: the project is not installed.

    `checkout` is the directory to install the project from.
    """
    if bound is None:
        return Finding(
            "python",
            "unknown",
            f"{version}; the project is not installed, so nothing says what it needs",
            pip(f"-e {checkout}"),
        )
    wanted = Requirement(f"python{bound}")
    return _judged(wanted, version, f"make the environment anew with python{bound}")


def packages(
    requirements: Sequence[Requirement], installed: Callable[[str], str | None]
) -> tuple[Finding, ...]:
    """One finding for each that is named or not ok, and one for all others together."""
    found = [_package(one, installed(one.name)) for one in requirements]
    shown = [one for one in found if one.item in NAMED or one.state != "ok"]
    others = [one for one in found if one not in shown]
    if others:
        listed = ", ".join(f"{one.item} {one.seen.split(' ')[0]}" for one in others)
        shown.append(Finding("other packages", "ok", listed))
    return tuple(shown)


def _package(wanted: Requirement, version: str | None) -> Finding:
    mend = pip(f'"{wanted}"')
    if version is None:
        return Finding(wanted.name, "missing", f"not installed, expected {wanted}", mend)
    return _judged(wanted, version, mend)


def _judged(wanted: Requirement, version: str, mend: str) -> Finding:
    bounds = ",".join(sorted(map(str, wanted.specifier), reverse=True)) or "any"
    try:  # a Python of its own branch calls itself 3.13.0+
        is_allowed = wanted.specifier.contains(Version(version.rstrip("+")), prereleases=True)
    except InvalidVersion:
        seen = f"{version}, which could not be compared with {bounds}"
        return Finding(wanted.name, "unknown", seen, mend)
    if is_allowed:
        return Finding(wanted.name, "ok", f"{version} ({bounds})")
    return Finding(wanted.name, "missing", f"{version}, expected {bounds}", mend)


def trackers(
    names: Sequence[str], is_installed: Callable[[str], bool], checkout: str
) -> tuple[Finding, ...]:
    """Whether those that a run would tell are there. Without a `checkout` a wheel is installed."""
    project = checkout or "cmaes-orchestrator"
    return tuple(
        Finding(f"tracker {name}", "ok", "its library is installed")
        if is_installed(name)
        else Finding(
            f"tracker {name}",
            "missing",
            "its library is not installed, and [track] names it",
            pip(f'{"-e " if checkout else ""}"{project}[{name}]"'),
        )
        for name in names
    )


def metadata(
    installed: Sequence[Requirement] | None, now: Sequence[Requirement], checkout: str
) -> Finding:
    """Whether what pip knows of a checkout is what its pyproject.toml says now."""
    mend = pip(f"-e {checkout}")
    if installed is None:
        return Finding("install", "absent", "runs from a checkout that is not installed", mend)
    here, there = set(now), set(installed)
    if not now or here == there:
        return Finding("install", "ok", f"{len(there)} requirements on record")
    differ = ", ".join(sorted({one.name for one in here ^ there}))
    return Finding(
        "install", "absent", f"made from an older pyproject.toml: {differ} differ since", mend
    )


def imports(ask: Ask, gpus: int, device: str = "auto") -> tuple[Finding, ...]:
    """Whether each named package can be imported, and torch sees the GPUs that the driver names.

    `gpus` is how many this process may use by the driver's account.
    """
    try:
        answer = ask()
    except NoAnswerError as error:
        mend = f'python -c "import {", ".join(NAMED)}"'
        return (Finding("imports", "unknown", str(error), mend),)
    broken = {name: str(answer["failed"][name]) for name in NAMED if name in answer["failed"]}
    found = [
        Finding(f"import {name}", "missing", said, pip(f"--force-reinstall {name}"))
        for name, said in broken.items()
    ]
    whole = [name for name in NAMED if name not in broken]
    if whole:
        seconds = f"in {answer['seconds']:.1f} s, in a process of its own"
        found.append(Finding("imports", "ok", f"{', '.join(whole)} {seconds}"))
    if "torch" in whole:
        found.append(_cuda(answer, gpus, device))
    return tuple(found)


def _cuda(answer: Answer, gpus: int, device: str) -> Finding:
    sees, built = int(answer["cuda_devices"]), answer["cuda_built"]
    build = f"torch built for CUDA {built}" if built else "torch built without CUDA"
    seen = f"{build}, sees {sees} of {gpus} GPU{'s' * (gpus != 1)}"
    if sees >= gpus:
        return Finding("CUDA", "ok" if gpus else "absent", seen)
    mend = pip(f"--force-reinstall --index-url {PYPI} torch") + ", or say --device cpu"
    if built:
        mend = "nvidia-smi (does the driver serve that CUDA?), or say --device cpu"
    return Finding("CUDA", "absent" if device == "cpu" else "missing", seen, mend)
