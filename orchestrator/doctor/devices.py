"""The devices that evaluations would run on, and who else uses them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from budgets.words import counted, in_bytes
from orchestrator.doctor.finding import Finding
from orchestrator.execution.devices import Offer
from orchestrator.execution.evaluate import Slots
from orchestrator.execution.occupancy import Gpu

LEAST_MEMORY_BYTES = 512 << 20
"""Of an evaluation: torch imported takes some 300 MiB. What yours takes, `calibrate` measures."""

BUSY_SHARE = 0.2  # of one CPU, from which on a process is named
LEAST_SECONDS = 0.05  # between two readings of who uses the CPUs
SHOWN = 5

Times = Mapping[int, tuple[str, float]]
"""CPU seconds so far of each process, by pid, with its name."""


@dataclass(frozen=True)
class Busy:
    """A process and how many CPUs it used."""

    pid: int
    name: str
    cpus: float


def busy(before: Times, after: Times, seconds: float) -> tuple[Busy, ...]:
    """Who used the CPUs between two readings, the busiest first."""
    if seconds < LEAST_SECONDS:
        return ()
    found = [
        Busy(pid, name, (used - before[pid][1]) / seconds)
        for pid, (name, used) in after.items()
        if pid in before and before[pid][0] == name
    ]
    found = [one for one in found if one.cpus >= BUSY_SHARE]
    return tuple(sorted(found, key=lambda one: -one.cpus))


def cpus(offer: Offer, load: float | None, users: Sequence[Busy]) -> Finding:
    """How many this process may use, and who uses them now."""
    seen = f"{offer.cpus} x {offer.cpu_name}, load {'unknown' if load is None else f'{load:.1f}'}"
    if not users:
        return Finding("CPUs", "ok", seen)
    listed = ", ".join(f"{one.name} (pid {one.pid}) {one.cpus:.1f}" for one in users[:SHOWN])
    return Finding("CPUs", "ok", f"{seen}; CPUs used by {listed}: times measured now are longer")


def memory(total: int, available: int, slots: Slots | None) -> Finding:
    """What is free, against the least that so many evaluations at once take."""
    count = 1 if slots is None else slots.count
    need = count * LEAST_MEMORY_BYTES
    seen = f"{in_bytes(available)} of {in_bytes(total)} available, "
    seen += f"{in_bytes(available / count)} an evaluation"
    if available >= need:
        return Finding("memory", "ok", seen)
    seen += f"; expected {in_bytes(LEAST_MEMORY_BYTES)} at least (assumed)"
    fits = available // LEAST_MEMORY_BYTES
    mend = f"--workers {fits}" if fits else "end what uses it: ps aux --sort=-rss | head"
    return Finding("memory", "missing", seen, mend)


@dataclass(frozen=True)
class Graphics:
    """The GPUs as the driver's own program tells of them."""

    program: bool  # nvidia-smi is there
    visible: tuple[tuple[str, str], ...] = ()  # (id, name) of each that this process may use
    seen: tuple[Gpu, ...] = ()
    hidden: bool = False  # CUDA_VISIBLE_DEVICES is set

    def gpu(self, device: str) -> Gpu | None:
        return next((one for one in self.seen if one.is_meant_by(device)), None)

    def troubled(self) -> list[str]:
        """Ids of those with something on them."""
        looked = [(device, self.gpu(device)) for device, _ in self.visible]
        return [device for device, gpu in looked if gpu is not None and gpu.trouble()]


def gpus(graphics: Graphics, name_of: Callable[[int], str]) -> tuple[Finding, ...]:
    """Each GPU and what is on it. None is needed: a CPU does."""
    if graphics.visible:
        free = [one for one, _ in graphics.visible if one not in graphics.troubled()]
        return tuple(_gpu(graphics, one, name, free, name_of) for one, name in graphics.visible)
    if not graphics.program:
        return (Finding("GPU", "absent", "none: no nvidia-smi on this machine"),)
    if graphics.hidden:
        seen = "none chosen by CUDA_VISIBLE_DEVICES"
        return (Finding("GPU", "absent", seen, "unset CUDA_VISIBLE_DEVICES"),)
    return (Finding("GPU", "unknown", "nvidia-smi is there and names none", "nvidia-smi"),)


def _gpu(
    graphics: Graphics, device: str, name: str, free: list[str], name_of: Callable[[int], str]
) -> Finding:
    item, gpu = f"GPU {device}", graphics.gpu(device)
    if gpu is None:
        return Finding(
            item, "unknown", f"{name}; the driver does not say who uses it", "nvidia-smi"
        )
    users = ", ".join(
        f"{name_of(pid)} (pid {pid}{'' if mib is None else f', {mib} MiB'})"
        for pid, mib in gpu.users
    )
    seen = f"{name}, {gpu.used_mib} MiB in use" + (f" by {users}" if users else "")
    if not gpu.trouble():
        return Finding(item, "ok", f"{seen}: free")
    mend = f"kill {' '.join(str(pid) for pid in gpu.pids)} (if it is yours to end)"
    if not gpu.pids:
        mend = "sudo fuser -v /dev/nvidia* (a process that is not visible from here)"
    if free:
        mend = f"export CUDA_VISIBLE_DEVICES={','.join(free)}, or {mend}"
    return Finding(item, "absent", f"{seen}: not free", mend)


def of_cluster(offer: Offer, slots_: Slots | str) -> tuple[Finding, ...]:
    """What a cluster offers to a run that joins it; who else uses that, Ray does not say."""
    gpus_ = Finding("GPU", "absent", f"none in {offer.where}")
    if offer.gpus:
        gpus_ = Finding("GPU", "ok", f"{offer.gpus} x {offer.gpu_name} in {offer.where}")
    return (
        Finding("CPUs", "ok", f"{offer.cpus} in {offer.where}"),
        gpus_,
        slots(slots_, Graphics(program=False)),
    )


def slots(slots_: Slots | str, graphics: Graphics) -> Finding:
    """How many evaluations would run at once, or (a text) why the devices do not suffice."""
    item = "evaluations at once"
    if isinstance(slots_, str):
        return Finding(item, "missing", slots_, "leave out --device, --workers and backend.threads")
    each = f"each with {counted(slots_.threads, 'thread')}"
    seen = f"{slots_.count} on {slots_.device}, {each}"
    troubled = graphics.troubled()
    if slots_.device != "cuda" or not troubled:
        return Finding(item, "ok", seen)
    if len(troubled) < len(graphics.visible):
        return Finding(item, "ok", f"{seen}; {len(troubled)} not free would be withdrawn")
    return Finding(
        item,
        "missing",
        f"{seen}, but no GPU is free",
        "say --device cpu, or end what is on one of them",
    )
