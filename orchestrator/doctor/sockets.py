"""Who can reach this user's processes over a network: whoever reaches a Ray may run code as him."""

import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from budgets.words import listed
from orchestrator.doctor.finding import Finding
from orchestrator.execution.server import EngineError

CLUSTERS = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # where true, a local Ray listens to everybody
_RAYS = (
    "gcs_server",
    "raylet",
    "ray::",
    "ray-dashboard",
    "/ray/dashboard/",
    "ray/_private",
    "ray.util.client",
)
SHOWN = 8
NO_CLUSTER = "ray status (on its head), or a Ray of your own: unset RAY_ADDRESS, no --address"
NEXT_TIME = "when the cluster is started next: RAY_AUTH_MODE=token ray start (on every node)"
RESTART = "if it is needed: RAY_AUTH_MODE=token ray start --head --node-ip-address=127.0.0.1"


@dataclass(frozen=True)
class Listener:
    """A socket of this user's that accepts connections."""

    address: str
    port: int
    pid: int
    name: str
    command: str = ""
    token: bool | None = None  # whether it was started to want Ray's token; None: cannot be seen

    @property
    def is_beyond_loopback(self) -> bool:
        """Whether anybody but this machine can connect, as far as the address tells."""
        reached = ip_address(self.address.partition("%")[0])
        mapped = getattr(reached, "ipv4_mapped", None)
        return not (mapped or reached).is_loopback

    @property
    def is_rays(self) -> bool:
        """Whether it belongs to a Ray: its control service, a node, a worker or the dashboard."""
        return any(word in self.name or word in self.command for word in _RAYS)

    def __str__(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{self.name} (pid {self.pid}) on {host}:{self.port}"


def listening(found: Sequence[Listener] | None, *, joined: bool = False) -> tuple[Finding, ...]:
    """What of this user's listens beyond loopback, Ray's by itself; None: nobody may know here.

    A Ray that a run is to join (`joined`) is there on purpose, and other nodes must reach it.
    """
    if found is None:
        mend = "sudo ss -ltnp"
        seen = "the system does not say which sockets listen"
        return (Finding("listening", "unknown", seen, mend),)
    open_ = [one for one in found if one.is_beyond_loopback]
    rays, others = [o for o in open_ if o.is_rays], [o for o in open_ if not o.is_rays]
    own = len(found) - len(open_)
    seen = f"beyond loopback: {listed(others, SHOWN + 1) or 'none'}; on loopback: {own}"
    inside = [one for one in found if one.is_rays and not one.is_beyond_loopback]
    return (Finding("listening", "ok", seen), _of_ray(rays, inside, joined=joined))


def _of_ray(rays: Sequence[Listener], inside: Sequence[Listener], *, joined: bool) -> Finding:
    item = "Ray listens"
    if not rays:
        who = ", ".join(sorted({f"{one.name} (pid {one.pid})" for one in inside}))
        seen = f"on loopback only: {who}" if inside else "no Ray of yours is running"
        return Finding(item, "ok", seen)
    pids = " ".join(map(str, sorted({one.pid for one in rays})))
    mend = f"kill {pids}; {RESTART}"
    naked = [one for one in rays if one.token is False]
    if naked and joined:
        seen = "the cluster that a run joins asks nobody for a token: whoever reaches it may run"
        return Finding(item, "absent", f"{seen} code as you", NEXT_TIME)
    if naked:
        seen = f"asks nobody for a token: {listed(naked, SHOWN + 1)}"
        return Finding(item, "missing", seen, mend)
    unseen = [one for one in rays if one.token is None]
    if unseen and not joined:
        return Finding(
            item, "unknown", f"perhaps without a token: {listed(unseen, SHOWN + 1)}", mend
        )
    how = "perhaps without a token" if unseen else "with a token"
    return Finding(item, "ok", f"{how}: {listed(rays, SHOWN + 1)}")


def private_ray(environment: Mapping[str, str]) -> Finding:
    """Where a Ray that a run starts here would listen; see `ray_access.set_environment`."""
    item, value = "a Ray of ours", environment.get(CLUSTERS, "0")
    if value.lower() not in ("1", "true"):
        seen = "would listen on 127.0.0.1 only, ports of the system's choice, without a dashboard"
        return Finding(item, "ok", seen)
    seen = f"would listen to other machines, because {CLUSTERS}={value}"
    return Finding(item, "missing", seen, f"unset {CLUSTERS}")


def cluster(address: str | None, reach: Callable[[str], None]) -> Finding:
    """Whether the Ray that a run would join answers; `reach` raises EngineError if not."""
    item = "cluster"
    if not address or address == "local":
        return Finding(item, "ok", "none asked for: a run joins no other Ray")
    if address == "auto":
        seen = "a run joins the Ray that it finds on this machine"
        return Finding(item, "unknown", seen, "ray status")
    try:
        reach(address)
    except EngineError as error:
        return Finding(item, "missing", str(error), NO_CLUSTER)
    return Finding(item, "ok", f"a run joins {address}, which answers")


def token(path: Path, uid: int, environment: Mapping[str, str]) -> Finding:
    """Whether Ray's token, if there is one, is this user's secret."""
    item = "token"
    if "RAY_AUTH_TOKEN" in environment:
        return Finding(item, "ok", "given by the environment (RAY_AUTH_TOKEN)")
    try:
        status = path.stat()
    except FileNotFoundError:
        seen = f"none at {path}: the first Ray of ours makes one, with mode 600"
        return Finding(item, "absent", seen)
    except OSError as error:
        return Finding(item, "unknown", f"{path}: {error.strerror}", f"ls -l {path}")
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid != uid:
        seen = f"{path} belongs to user {status.st_uid}, not to you"
        return Finding(item, "missing", seen, f"rm {path} (a new one is made)")
    if mode & 0o077:
        seen = f"{path} has mode {mode:o}: others on this machine may read it"
        return Finding(item, "missing", seen, f"chmod 600 {path}")
    return Finding(item, "ok", f"{path}, mode {mode:o}")
