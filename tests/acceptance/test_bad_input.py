"""Bad input is refused: its exit code, one line that names what is wrong, nothing written.

The commonest mistakes, with every word that is said, are in `tests/approved/errors.txt`.
"""

import re
import shutil
from pathlib import Path

import pytest

from tests.product.product import Product

FILES = {
    "good.toml": 'objective = "sphere"\nsearch.tier = "min"\nbackend.executor = "inline"\n',
    "typo.toml": 'objective = "sphere"\n[search]\nteir = "min"\n',
    "typed.toml": "[training]\nmicro_batch_size = true\n",
    "corrupt.toml": 'objective = "sphere\n',
    "latin1.toml": 'objective = "sph\xe8re"\n',
    "notes.txt": "buy milk\n",
    "train.py": "def evaluate(knobs, seed, budget):\n    return knobs['lr']\n",
    "short.py": "def evaluate(knobs):\n    return 1.0\n",
    "function.toml": 'objective = "python:train:evaluate"\n'
    "training.knobs.lr = { min = 0.1, max = 1.0, baseline = 0.5 }\n",
    "campaign.toml": 'objective = "sphere"\ncampaign.conditions = [{name = "a"}, {name = "a"}]\n',
}
SECRETS = {
    "1.toml": "HF_TOKEN = 'abc-abc'",
    "2.toml": "A = 'glpat-ABCDEFGHIJKLMNOPQRST'",
    "3.toml": "A = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnb'",
}
PROGRAM = FILES["function.toml"].replace("python:train:evaluate", "command")
PROGRAM += "training.argv = ['true']\ntraining.score = 'a'\n"
FILES |= {name: f"{PROGRAM}training.environment.{one}" for name, one in SECRETS.items()}
FILES["command.toml"] = PROGRAM
RUN = "--objective sphere --executor inline --assume-eval-seconds 1"
FUNCTION = "phase1 --tier min function.toml"
COMMAND = FUNCTION.replace("function", "command")
FIRST = f"phase1 --tier min --run-id first {RUN}"

BAD = f"""
no-such-command                                         | no-such-command
phase1 {RUN}                                            | --tier
phase1 --tier min {RUN} --set dimension=many            | dimension
phase1 --tier min {RUN} --set failure_rate=true         | failure_rate
phase1 --tier min {RUN} --set search.sigma0=7           | 0.3
phase1 --tier min {RUN} --max-cost 3                    | price
phase1 --tier min {RUN} --window 1999-01-01T00:00       | 1999
phase1 --tier min {RUN} --set search.population=1       | 1
phase1 --tier min {RUN} --set backend.threads=100000    | 100000
phase1 --tier min --objective sphere --executor dask    | inline
phase1 --tier min {RUN} --device tpu                    | tpu
phase1 --tier min {RUN} --run-id a/b                    | a/b
phase1 --tier min {RUN} --override patience --reason x  | no such run
phase1 --tier min {RUN} --seed 0                        | seed
phase1 --tier min {RUN} --max-evals 3                   | one generation
phase1 --tier min {RUN} --set search.population=7       | even
phase1 --tier min {RUN} --workers 1000                  | 1000
phase1 --tier min {RUN} --reason why                    | --override
phase1 --tier min {RUN} --colour red                    | colour
phase1 --tier min {RUN} --address h:1                   | inline
phase1 --tier min {RUN} --window 0h                     | --window: expected longer than
phase1 --tier min {RUN} --window 99999999d              | 100000h
phase1 --tier min {RUN} --preset quick                  | preset
phase1 --tier min --set target_flops=1e9 --workers 1    | target_flops
phase1 --tier min latin1.toml                           | latin1.toml
{FIRST} --set dimension=3                               | dimension
{FIRST} --override crash_rate --reason x                | crash_rate
phase1 --tier min --runs-dir notes.txt {RUN}            | notes.txt | 8
phase2 --tier min --variant robust                      | --from
phase2 --tier min --variant sturdy --from first         | sturdy
phase2 --tier min --variant robust --from first {RUN}   | verdict
run                                                     | --tier
run good.toml --config good.toml                        | No such option
run good.toml good.toml                                 | unexpected extra argument
run good.toml --set factors.noise=[]                    | factors.noise: expected a list of values
run good.toml --set campaign.name=a                     | a campaign needs conditions
phase1 good.toml --set campaign.name=a                  | describes a campaign
phase1 --tier min --objective command                   | argv
plan good.toml --window 10m                             | safety margin of 1800 s
run folder                                              | folder
run typo.toml                                           | tier
run corrupt.toml                                        | corrupt.toml
run function.toml --tier min --set training.knobs.lr.baseline=2 | lr
run function.toml --tier min --set training.direction=maximize | above all tables
{FUNCTION} --set training.knobs.lr.max=1e308            | lr
{FUNCTION} --objective python:train:absent              | absent
{FUNCTION} --objective python:budgets.x:y               | budgets
{FUNCTION} --objective python:short:evaluate            | seed
{COMMAND} --set 'training.argv=["absent.sh"]'           | absent.sh
{COMMAND} --set 'training.argv=["sh", "no.py"]'         | no.py
{COMMAND} --set 'training.argv=["sh", "{{dept}}"]'      | dept
run campaign.toml                                       | conditions
run 1.toml --set search.tier=min                        | the ledger
run 2.toml --set search.tier=min                        | the ledger
run 3.toml --set search.tier=min                        | the ledger
plan --objective sphere --fit                           | --window
plan --objective ellipsoid --fit --window 1h            | calibrate
plan good.toml --fit --devices 1,4                      | --devices
plan --objective sphere --address head                  | HOST:PORT
plan good.toml --fit --window 2020-01-01T00:00          | 1800
calibrate --objective sphere --override patience        | --reason
explain good.toml --set thresholds.crash_rate_paus=1    | crash_rate_pause
train --set num_batches=1 --set micro_batch_size=true   | micro_batch_size
train --set num_batches=1 --set seed=true               | seed: expected a whole number
train --set num_batches=1 --set checkpoint_dir=         | checkpoint_dir
train --set num_batches=1 --set target_flop=1e9         | target_flops
train typed.toml                                        | expected a whole number
init --template phase1 --out good.toml                  | good.toml
init --template smoke --out nowhere/x.toml              | nowhere
export slurm good.toml --set slurm.time=never           | never
status twin                                             | phase2
report first absent                                     | absent
amend first --reason x                                  | --max
verify first --salvage notes.txt                        | notes.txt
track first --to no-such-tracker                        | no-such-tracker
amend first --max-evals 2 --reason x                    | pay
check knobs --objective idle --knobs x0,y               | y
check proxy --objective sphere --set search.proxy=2     | 2
"""


@pytest.fixture(scope="module")
def user(shared: Product) -> Product:
    """A user with two runs of one name, another run, and files most of which are wrong."""
    (shared.folder / "folder").mkdir()
    for name, text in FILES.items():
        (shared.folder / name).write_text(text, encoding="latin-1")
    shared(FIRST)
    runs = shared.folder / "artifacts/cmaes"
    for phase in ("phase1", "phase2"):
        shutil.copytree(runs / "phase1/first", runs / phase / "twin")
    return shared


def everything(folder: Path) -> dict[Path, bytes]:
    """What every file holds; of a lock only that it is there, for it names who had it last."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path: b"" if path.suffix == ".lock" else path.read_bytes() for path in files}


@pytest.mark.parametrize("row", BAD.strip().splitlines())
def test_it_is_refused_in_one_line(user: Product, row: str) -> None:
    line, word, code = [*re.split(r" +\| ", row), "2"][:3]
    before = everything(user.folder)
    done = user(line, code=int(code))
    assert word in done.err
    assert "Traceback" not in done.text
    assert not any(secret.split("'")[1] in done.text for secret in SECRETS.values())
    assert done.err.count("error: ") == 1
    assert everything(user.folder) == before


def test_what_cannot_start_is_said_to_lack_what(user: Product) -> None:
    wrong = "--objective python:train:no_such"
    assert "no_such" in user(f"doctor function.toml {wrong}", code=2).out


def test_with_json_the_error_is_a_document_too(user: Product) -> None:
    error = user.json("status absent", code=2)
    assert (error["exit_code"], "absent" in error["error"]) == (2, True)
