"""Record the golden runs again: `python -m tests.golden.record [NAME ...]` in the checkout's root.

Each run's ledger is kept as it was written, with its *essence*: what it found and what it spent,
as the test's own books read it. A ledger of a later schema must have the same essence.
"""

import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import orjson

from tests.product.books import HEAD, LEDGER, Books, cut, records, sealed
from tests.product.product import Product, wait_until

RUNS = Path(__file__).with_name("runs")

RUDE = """\
import os, signal, time
from pathlib import Path

def evaluate(knobs, seed, budget):
    behaviour = int(knobs["a"] * 997) % 14
    time.sleep(0.5)
    seen = Path(__file__).with_name(f"seen_{behaviour}_{seed}")
    first = not seen.exists()
    seen.touch()
    if behaviour == 1:
        return float("nan")
    if behaviour == 2:
        raise MemoryError("too wide")
    if behaviour == 3:
        time.sleep(60)
    if behaviour == 4:
        raise ValueError("a bad knob")
    if behaviour in (5, 6, 7) and first:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    return 1 + (knobs["a"] - 0.3) ** 2 + (knobs["b"] - 0.4) ** 2

def always_fails(knobs, seed, budget):
    if (knobs["a"], knobs["b"]) == (0.5, 0.5):
        return 1.0
    raise ValueError("nothing but the baseline works")

def at_the_end(knobs, seed, budget):
    noise = ((seed * 2654435761) % 1000) / 100_000
    return 2 - 0.5 * knobs["lr"] - 0.01 * min(knobs["width"], 12) + noise / budget**0.5
"""
CONFIG = """\
objective = "python:rude:{function}"
[training]
directory = "."
budget = 4
{knobs}
"""
PLAIN = "".join(
    f"knobs.{name} = {{ min = 0.0, max = 1.0, baseline = 0.5 }}\n" for name in ("a", "b")
)
TYPED = """\
knobs.lr = { kind = "log10", min = 1e-3, max = 1e-1, baseline = 1e-2 }
knobs.width = { kind = "int", min = 4, max = 32, baseline = 8 }
"""
FACTORS = """\
[factors.steps]
few = { training.budget = 4 }
many = { training.budget = 9 }
[factors.rate]
low = { knobs.lr = { kind = "log10", min = 1e-3, max = 1e-1, baseline = 5e-3 } }
high = { knobs.lr = { kind = "log10", min = 1e-3, max = 1e-1, baseline = 5e-2 } }
[campaign]
seeds = [1, 2, 3]
controls = true
[backend]
executor = "inline"
"""
LOWERED = {("reference", 0): 1.0, ("reference", 1): 0.92, ("winner", 0): 0.98}
LOWERED |= {("finalists", 0): 0.98, ("finalists", 1): 0.98}
SMALL = "--set dimension=4 --executor inline --workers 2"
NOISY = f"{SMALL} --set noise=0.01"


def phase1(product: Product, name: str, words: str, code: int = 0) -> Path:
    product(f"phase1 --run-id {name} {words}", code=code)
    return product.run_directory(name)


def own_function(product: Product, function: str, knobs: str) -> str:
    product.write("rude.py", RUDE)
    product.write("run.toml", CONFIG.format(function=function, knobs=knobs))
    return "run.toml --executor local --workers 2"


def target(product: Product, name: str, objective: str, words: str, code: int = 0) -> Path:
    return phase1(product, name, f"--tier target --objective {objective} {words}", code)


def smoke(product: Product) -> Path:
    return phase1(product, "smoke", f"--tier min --objective sphere {NOISY}")


def go(product: Product) -> Path:
    words = f"{NOISY} --set verdict.long_run_seeds=5 --set persists=1.0"
    return target(product, "go", "sphere", words)


def go_at_the_end(product: Product) -> Path:
    words = own_function(product, "at_the_end", TYPED)
    return phase1(product, "go_at_the_end", f"--tier target {words}")


def go_fades(product: Product) -> Path:
    words = f"{NOISY} --set verdict.long_run_seeds=5 --set persists=0.2"
    return target(product, "go_fades", "sphere", words)


def no_go_noise(product: Product) -> Path:
    words = f"{NOISY} --set search.seeds_per_candidate=3"
    return target(product, "no_go_noise", "noise", words, code=4)


def no_go_small(product: Product) -> Path:
    words = f"{SMALL} --set noise=0.002 --set available=0.006"
    return target(product, "no_go_small", "sphere", words, code=4)


def statuses(product: Product) -> Path:
    """Every way to end, retries, a rule that pauses, an override."""
    words = own_function(product, "evaluate", PLAIN)
    words = (
        f"phase1 --run-id statuses --tier target {words} --assume-eval-seconds 1"
        " --set evaluation.limit_seconds=3 --set search.population=20"
        " --set search.generations=3 --set verdict.confirm_seeds=0"
    )
    process = product.start(words)
    wait_until(lambda: any(product.folder.glob("**/statuses/eval/**/started.json")))
    for _ in range(2):  # the second signal kills what runs
        process.send_signal(signal.SIGTERM)
        time.sleep(0.15)
    process.wait()
    for session in range(6):
        if product(words, code=None).code != 3:
            break
        rule = product.books("statuses").fired[-1].rule
        reason = f"'the rude part is known ({session})'"
        product(f"{words} --override {rule} --reason {reason}", code=None)
    return product.run_directory("statuses")


def all_failed(product: Product) -> Path:
    words = own_function(product, "always_fails", PLAIN)
    words += " --assume-eval-seconds 1 --set evaluation.limit_seconds=3"
    return phase1(product, "all_failed", f"--tier min {words}", code=3)


def capped(product: Product) -> Path:
    """Stopped by a cap, which was raised, and stopped by it again."""
    words = (
        f"phase1 --run-id capped --tier target --objective sphere {NOISY} --set seconds=0.02"
        " --assume-eval-seconds 0.02 --set evaluation.limit_seconds=5"
        " --set verdict.confirm_seeds=0 --max-device-hours"
    )
    product(f"{words} 0.0045", code=4)
    product("amend capped --max-device-hours 0.0048 --reason 'the trend is good'")
    product(f"{words} 0.0048", code=None)
    return product.run_directory("capped")


def interrupted(product: Product) -> Path:
    """As a kill in the middle leaves it: two evaluations are open."""
    run = target(product, "interrupted", "sphere", NOISY)
    events = [line["event"] for line in Books.of(run).lines]
    generation = next(
        i for i, e in enumerate(events) if e["kind"] == "generation_told" and e["generation"] == 3
    )
    cut(run, generation + 6)
    return run


def phase2(product: Product) -> Path:
    go(product)
    words = "--tier min --from go --variant robust --run-id phase2"
    product(f"phase2 {words} --executor inline --workers 2", code=None)
    return product.run_directory("phase2")


def proxy_check(product: Product) -> Path:
    product(f"check proxy --objective sphere {NOISY}")
    (ledger,) = (p for p in product.folder.glob("**/ledger.jsonl") if "check" in p.parts[-3])
    return ledger.parent


def space_check(product: Product) -> Path:
    product(f"check knobs --objective idle {NOISY} --seeds 4")
    (ledger,) = product.folder.glob("**/check/*/ledger.jsonl")
    return ledger.parent


def calibration(product: Product) -> Path:
    product(f"calibrate --objective sphere {NOISY}")
    (ledger,) = product.folder.glob("**/calibration/*/ledger.jsonl")
    return ledger.parent


def campaign(product: Product) -> Path:
    """A factorial of two settings, the knobs' baselines among them, and its control."""
    product.write("rude.py", RUDE)
    product.write(
        "factorial.toml",
        CONFIG.format(function="at_the_end", knobs=TYPED) + FACTORS,
    )
    product("run factorial.toml")
    (ledger,) = product.folder.glob("**/campaign/*/ledger.jsonl")
    return ledger.parent


def beaten_by_a_control(product: Product) -> Path:
    """A small training with scores lowered on the way: its winner is a Go, its controls better."""
    sizes = "n_layer=1 n_head=1 n_kv_head=1 n_embd=16 sequence_len=128 micro_batch_size=3"
    sizes += " gradient_accumulation_steps=1 target_flops=6e8 val_windows=512"
    words = "--tier target --executor local --workers 1 --set evaluation.limit_seconds=60"
    words += " --set search.population=4 --set search.generations=2"
    words += "".join(f" --set training.{size}" for size in sizes.split())
    words += " --set verdict.long_run=0 --set verdict.confirm_seeds=5"
    run = phase1(product, "beaten_by_a_control", words, code=4)
    end = ("fired", "decided", "concluded")
    lines = [one for one in Books.of(run).lines if one["event"]["kind"] not in end]
    for event in (line["event"] for line in lines):
        if event["kind"] == "settled" and event["comparison"] is not None:
            event["score"] *= LOWERED[event["comparison"], min(event["candidate"], 1)]
    (run / LEDGER).write_bytes(sealed(lines))  # it decides again
    (run / HEAD).unlink()
    return phase1(product, "beaten_by_a_control", words)


RECORDED: tuple[Callable[[Product], Path], ...] = (
    smoke, go, go_at_the_end, go_fades, no_go_noise, no_go_small, statuses, all_failed,
    capped, interrupted, phase2, proxy_check, space_check, calibration, campaign,
    beaten_by_a_control,
)  # fmt: skip


def main() -> None:
    for make in RECORDED:
        if sys.argv[1:] and make.__name__ not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as place:
            began = time.monotonic()
            run = make(Product(Path(place) / "user"))
            kept = RUNS / make.__name__
            shutil.rmtree(kept, ignore_errors=True)
            kept.mkdir(parents=True)
            shutil.copy(run / LEDGER, kept)
            books = Books.of(kept)
            options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
            (kept / "essence.json").write_bytes(orjson.dumps(books.kept, option=options))
            verdict = books.verdict and (books.verdict.grade, books.verdict.reason)
            took = time.monotonic() - began
            print(f"{make.__name__:14}{records(kept):5} records {took:5.1f} s", end=" ")
            print(run.parent.name, books.statuses, verdict, [f.rule for f in books.fired])


if __name__ == "__main__":
    main()
