"""Bad input is refused: its exit code, one line that names what is wrong, nothing written."""

import shlex
import shutil
from pathlib import Path

import pytest

from tests.acceptance.product import Product, WarmStart

FILES = {
    "good.toml": 'objective = "sphere"\nsearch.tier = "min"\nbackend.executor = "inline"\n',
    "typo.toml": 'objective = "sphere"\n[search]\nteir = "min"\n',
    "type.toml": 'objective = "sphere"\n[search]\nseed = "one"\n',
    "true.toml": 'objective = "sphere"\n[training]\nfailure_rate = true\n',
    "corrupt.toml": 'objective = "sphere\n',
    "twice.toml": 'objective = "sphere"\nobjective = "ellipsoid"\n',
    "rules.toml": "[thresholds]\ncrash_rate_puase = 0.2\n",
    "knobs.json": '{"knobs": {"x9999": 1}}',
    "notes.txt": "buy milk\n",
    "train.py": "def evaluate(knobs, seed, budget):\n    return knobs['lr']\n",
    "function.toml": 'objective = "python:train:evaluate"\n[training]\n'
    "knobs.lr = { min = 0.1, max = 1.0, baseline = 0.5 }\n",
    "bound.toml": 'objective = "python:train:evaluate"\n[training]\n'
    "knobs.lr = { min = 0.1, max = 1.0, baseline = 2.0 }\n",
    "range.toml": 'objective = "python:train:evaluate"\n[training]\n'
    "knobs.lr = { min = 1.0, max = 0.1, baseline = 0.5 }\n",
    "gone.toml": 'objective = "python:train:no_such"\n[training]\n'
    "knobs.lr = { min = 0.1, max = 1.0, baseline = 0.5 }\n",
    "max.toml": 'objective = "python:train:evaluate"\n[training]\ndirection = "maximize"\n'
    "knobs.lr = { min = 0.1, max = 1.0, baseline = 0.5 }\n",
    "campaign.toml": 'objective = "sphere"\n[[campaign.conditions]]\nname = "a"\n'
    'training.noise = 0.1\n[[campaign.conditions]]\nname = "a"\ntraining.noise = 0.02\n',
}
RUN = "--objective sphere --executor inline --assume-eval-seconds 1"
FIRST = f"phase1 --tier min --run-id first {RUN}"
PAUSED = f"phase1 --tier min --run-id paused {RUN} --set failure_rate=1"

BAD = f"""
no-such-command                                         | no-such-command
phase1 {RUN}                                            | --tier
phase1 --tier huge {RUN}                                | huge
phase1 --tier min --objective spere                     | sphere
phase1 --tier min {RUN} --set dimensoin=3               | dimension
phase1 --tier min {RUN} --set dimension=many            | dimension
phase1 --tier min {RUN} --set failure_rate=true         | failure_rate
phase1 --tier min {RUN} --set search.teir=min           | tier
phase1 --tier min {RUN} --sigma0 7                      | 0.3
phase1 --tier min {RUN} --max-hours -1                  | -1
phase1 --tier min {RUN} --max-evals 0                   | 0
phase1 --tier min {RUN} --max-cost 3                    | price
phase1 --tier min {RUN} --window soon                   | soon
phase1 --tier min {RUN} --window -2h                    | -2h
phase1 --tier min {RUN} --window 1999-01-01T00:00       | 1999
phase1 --tier min {RUN} --population 1                  | 1
phase1 --tier min {RUN} --workers 0                     | 0
phase1 --tier min {RUN} --threads 100000                | 100000
phase1 --tier min --objective sphere --executor dask    | inline
phase1 --tier min {RUN} --device tpu                    | tpu
phase1 --tier min {RUN} --run-id a/b                    | a/b
phase1 --tier min {RUN} --slots-dir here                | max-concurrent
phase1 --tier min {RUN} --known knobs.json              | x9999
phase1 --tier min {RUN} --known absent.json             | absent.json
phase1 --tier min {RUN} --warm-start absent             | absent
phase1 --tier min {RUN} --override patience             | --reason
phase1 --tier min {RUN} --override patience --reason x  | no such run
phase1 --tier min --config latin1.toml                  | latin1.toml
phase1 --tier min --config max.toml                     | negative
{FIRST} --set dimension=3                               | dimension
{FIRST} --override crash_rate --reason x                | crash_rate
{PAUSED} --override patience --reason x                 | patience
{PAUSED} --override too_few_healthy --reason x          | too_few_healthy
phase1 --tier min --runs-dir notes.txt {RUN}            | notes.txt | 8
phase2 --tier min --variant robust                      | --from
phase2 --tier min --variant robust --from absent        | absent
phase2 --tier min --variant sturdy --from first         | sturdy
phase2 --tier min --variant robust --from first {RUN}   | verdict
run                                                     | FILE
run absent.toml                                         | absent.toml
run folder                                              | folder
run notes.txt                                           | notes.txt
run typo.toml                                           | tier
run bound.toml                                          | lr
run corrupt.toml                                        | corrupt.toml
run twice.toml                                          | twice.toml
run type.toml                                           | seed
run true.toml                                           | failure_rate
run range.toml                                          | lr
run campaign.toml                                       | twice
run artifacts/cmaes/phase1/first/ledger.jsonl           | ledger.jsonl
plan phase1 --objective sphere --fit                    | --window
plan phase1 --objective sphere --out x.toml             | --fit
plan phase1 --objective ellipsoid --fit --window 1h     | calibrate
plan campaign good.toml                                 | campaign
calibrate --objective sphere --again                    | --reason
calibrate --objective sphere --worker-counts 1,2        | --sweep-workers
dry-run --config function.toml --knobs lr=7             | lr
dry-run --config function.toml --knobs rate=0.5         | rate
explain good.toml --thresholds rules.toml               | crash_rate_pause
explain absent                                          | absent
init --template surch                                   | surch
init --template phase1 --out good.toml                  | good.toml
export slurm good.toml --set slurm.time=never           | never
status absent                                           | absent
status twin                                             | phase2
report first --png no-such-plot                         | no-such-plot
compare first                                           | 2 to 20
best absent                                             | absent
amend first --max-hours 1                               | --reason
amend first --reason x                                  | --max
verify absent                                           | absent
ledger salvage first --out notes.txt                    | notes.txt
track first --to no-such-tracker                        | no-such-tracker
proxy check --objective sphere --fraction 2             | 2
"""
TABLE = [[part.strip() for part in line.split(" | ")] for line in BAD.strip().splitlines()]


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory, warm_start: WarmStart) -> Product:
    """Somebody with two runs of one name, another run, and files that are wrong each in a way."""
    user = Product(tmp_path_factory.mktemp("bad") / "user", warm_start)
    for name, text in FILES.items():
        user.write(name, text)
    (user.folder / "latin1.toml").write_bytes('objective = "sph\xe8re"\n'.encode("latin-1"))
    (user.folder / "folder").mkdir()
    user(*shlex.split(FIRST))
    user(*shlex.split(PAUSED), code=3)
    runs = user.folder / "artifacts/cmaes"
    for phase in ("phase1", "phase2"):
        shutil.copytree(runs / "phase1/first", runs / phase / "twin")
    return user


def everything(folder: Path) -> dict[Path, bytes]:
    """What every file holds; of a lock only that it is there, for it names who had it last."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path: b"" if path.suffix == ".lock" else path.read_bytes() for path in files}


@pytest.mark.parametrize("row", TABLE, ids=[row[0] for row in TABLE])
def test_it_is_refused_in_one_line(user: Product, row: list[str]) -> None:
    line, word, *code = row
    before = everything(user.folder)
    done = user(*shlex.split(line), code=int(code[0]) if code else 2)
    assert word in done.err
    assert "Traceback" not in done.text
    assert done.err.count("error: ") == 1
    assert everything(user.folder) == before


def test_a_dry_run_of_what_cannot_start_says_why(user: Product) -> None:
    done = user("dry-run", "--config", "gone.toml", code=2)
    assert "no_such" in done.out
    assert user.json("dry-run", "--config", "function.toml")["missing"] is None


def test_with_json_the_error_is_a_document_too(user: Product) -> None:
    error = user.json("status", "absent", code=2)
    assert error["exit_code"] == 2
    assert "absent" in error["error"]
