"""The door `command`: any program that takes knobs and gives a number back."""

import json

import pytest

from tests.product.product import Product

SEARCH = """
objective = "command"
[training]
argv = {argv}
score = {score}
budget = 100
send = "{send}"
environment = {{ OUT = "{{directory}}"{variables} }}
sources = ["*.sh"]
knobs.lr = {{ kind = "log10", min = 1e-4, max = 0.1, baseline = 0.003 }}
knobs.depth = {{ kind = "int", min = 1, max = 8, baseline = 2 }}
fixed = {{ mode = "a b;$HOME" }}
"""
ARGV = '["sh", "train.sh", "{budget}"]'
NAMED = 'LR = "{lr}", DEPTH = "{depth}", SEED = "{seed}", MODE = "{mode}"'
PLACED = '["sh", "train.sh", "{budget}", "{lr}", "{depth}", "{seed}", "{mode}"]'
LINES = 'for word in "$@"; do echo "$word"; done'
VARIABLES = 'for word in "$1" "$LR" "$DEPTH" "$SEED" "$MODE"; do echo "$word"; done'
JSON = 'echo "$1"; tr -d "{\\"}" <"$KNOBS_FILE" | tr , "\\n" | sed "s/^ *//"; echo'
A_PATTERN = '{ pattern = "reached (.*) after" }'
A_FILE = '{ file = "result.json", key = "a.b" }'
INTO_A_FILE = 'mkdir -p "$OUT"; echo "{\\"a\\": {\\"b\\": 0.25}}" > "$OUT/result.json"'


@pytest.mark.parametrize(
    ("send", "program", "form", "score"),
    [
        ("key=value", f"{LINES}; echo score: 9; echo score=0.25", "{name}={value}", '"score"'),
        ("flags", f"{LINES}; echo reached 0.25 after 1 h", "--{name}={value}", A_PATTERN),
        ("argv", f"{LINES}; {INTO_A_FILE}", "{value}", A_FILE),
        ("environment", f"{VARIABLES}; echo score: 0.25", "{value}", '"score"'),
        ("json", f"{JSON}; echo score: 0.25", "{name}: {value}", '"score"'),
    ],
)
def test_knobs_seed_and_budget_arrive_as_was_asked_and_the_score_comes_back(
    product: Product, send: str, program: str, form: str, score: str
) -> None:
    argv, variables = PLACED if send == "argv" else ARGV, ""
    if send == "environment":
        send, variables = "argv", f", {NAMED}"
    product.write("train.sh", program)
    search = SEARCH.format(argv=argv, score=score, send=send, variables=variables)
    product.write("search.toml", search)
    words = "phase1 --tier min search.toml --executor inline --assume-eval-seconds 1"
    product(f"{words} --set search.population=8")
    run, books = product.run_directory(), product.books()
    assert {attempt.score for attempt in books.attempts} == {0.25}
    places = [file.parent for file in run.glob("eval/**/config.json")]
    assert len(places) == len(books.attempts)
    for place in places:
        config = json.loads((place / "config.json").read_text())
        lr, depth = float(f"{config['knobs']['lr']:.12g}"), config["knobs"]["depth"]
        given = {"lr": lr, "depth": depth, "seed": config["seed"], "mode": "a b;$HOME"}
        expected = {form.format(name=name, value=value) for name, value in given.items()}
        assert {*expected, "100"} <= set((place / "stdout.txt").read_text().splitlines())
    product.verify()
