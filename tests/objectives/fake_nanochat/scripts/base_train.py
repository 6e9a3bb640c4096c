"""A nanochat that trains nothing: its flags, its lines and its traps.

The score is a bowl in the logarithms of two learning rates and in two other knobs, with noise by
the seed. It diverges with `--matrix-lr` above 0.25. `FAKE_TRAP` asks for what the flags cannot.
"""

import argparse
import math
import os
import random
import signal
import sys

import torch
from nanochat.common import get_base_dir  # type: ignore[import-not-found]

parser = argparse.ArgumentParser(description="Pretrain base model")
parser.add_argument("--run", type=str, default="dummy")
parser.add_argument("--device-type", type=str, default="")
parser.add_argument("--depth", type=int, default=20)
parser.add_argument("--aspect-ratio", type=int, default=64)
parser.add_argument("--head-dim", type=int, default=128)
parser.add_argument("--max-seq-len", type=int, default=2048)
parser.add_argument("--window-pattern", type=str, default="SSSL")
parser.add_argument("--target-flops", type=float, default=-1.0)
parser.add_argument("--device-batch-size", type=int, default=32)
parser.add_argument("--total-batch-size", type=int, default=-1)
parser.add_argument("--embedding-lr", type=float, default=0.3)
parser.add_argument("--unembedding-lr", type=float, default=0.008)
parser.add_argument("--weight-decay", type=float, default=0.28)
parser.add_argument("--matrix-lr", type=float, default=0.02)
parser.add_argument("--scalar-lr", type=float, default=0.5)
parser.add_argument("--warmup-steps", type=int, default=40)
parser.add_argument("--warmdown-ratio", type=float, default=0.65)
parser.add_argument("--final-lr-frac", type=float, default=0.05)
parser.add_argument("--eval-every", type=int, default=250)
parser.add_argument("--eval-tokens", type=int, default=80 * 524288)
parser.add_argument("--core-metric-every", type=int, default=2000)
parser.add_argument("--sample-every", type=int, default=2000)
args = parser.parse_args()
trap = os.environ.get("FAKE_TRAP", "")

UNTRAINED = 3.602092
if torch.initial_seed():
    sys.exit("the seed is set before the training sets it")
torch.manual_seed(42)
random.seed(torch.initial_seed())

base = get_base_dir()
with open(os.path.join(base, "tokenizer", "tokenizer.pkl"), "rb") as file:
    file.read()
vocab = 2048
data = os.path.join(base, "base_data_climbmix")
assert [n for n in os.listdir(data) if n.endswith(".parquet")], "No dataset parquet files found"

dim = math.ceil(args.depth * args.aspect_ratio / args.head_dim) * args.head_dim
matrices = 12 * args.depth * dim * dim
per_token = 6 * (matrices + vocab * dim)
print(f"Estimated FLOPs per token: {per_token:e}")
num_iterations = round(args.target_flops / (per_token * args.total_batch_size))
print(f"Calculated number of iterations from target FLOPs: {num_iterations:,}")
tokens = args.total_batch_size * num_iterations
print(f"Total number of training tokens: {tokens:,}")
print(f"Total training FLOPs estimate: {per_token * tokens:e}")


def trained(progress: float) -> float:
    """Bits per byte after that share of the steps."""
    off = (
        0.20 * math.log10(args.matrix_lr / 0.06) ** 2
        + 0.10 * math.log10(args.unembedding_lr / 0.03) ** 2
        + 0.05 * (args.warmdown_ratio - 0.4) ** 2
        + 0.05 * (args.final_lr_frac - 0.1) ** 2
    )
    return float(UNTRAINED + progress * (off - 0.6) + random.gauss(0, 0.002))


model = torch.compile(trained, dynamic=False)
diverges = args.matrix_lr > 0.25 or trap == "nan"
for step in range(num_iterations + 1):
    last = step == num_iterations
    if args.eval_every > 0 and (last or step % args.eval_every == 0):
        bpb = UNTRAINED if step == 0 else float(model(step / num_iterations))
        if step and (diverges or trap == "late nan"):
            bpb = math.nan
        elif step and trap == "late inf":
            bpb = math.inf
        print(f"Step {step:05d} | Validation bpb: {bpb:.6f}")
    if last:
        break
    if step == 2:
        if trap == "oom":
            raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has ...")
        if trap == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if trap == "short":
            sys.exit(0)
    loss = math.nan if diverges and step > 1 else 7.6 - step * 0.01
    print(
        f"step {step:05d}/{num_iterations:05d} ({100 * step / num_iterations:.2f}%) | "
        f"loss: {loss:.6f} | lrm: 1.00 | dt: 500.00ms | tok/sec: 4,096 | bf16_mfu: 0.00 | "
        f"epoch: 1 pq: 0 rg: 4 | total time: 0.00m"
    )

print("Peak memory usage: 12.50MiB")
print("Total training time: 0.00m")
