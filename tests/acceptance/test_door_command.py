"""The door `command`: any program that takes knobs and gives a number back."""

import json

import pytest

from tests.acceptance.books import Books
from tests.acceptance.product import Product

SEARCH = """
objective = "command"
[training]
argv = {argv}
score = {score}
budget = 100
send = "{send}"
environment = {{ OUT = "{{directory}}" }}
{more}
knobs.lr = {{ kind = "log10", min = 1e-4, max = 0.1, baseline = 0.003 }}
knobs.depth = {{ kind = "int", min = 1, max = 8, baseline = 2 }}
fixed = {{ mode = "a b;$HOME" }}
[thresholds]
crash_rate_pause = 1.0
nan_rate_pause = 1.0
"""
MIN = ("phase1", "--tier", "min", "--config", "search.toml", "--assume-eval-seconds", "1")
INLINE = ("--executor", "inline", "--population", "8")
ARGV = '["sh", "train.sh", "{budget}"]'
PLACED = '["sh", "train.sh", "{budget}", "{lr}", "{depth}", "{seed}", "{mode}"]'
WORDS = 'for word in "$@"; do echo "$word"; done\n'
VARIABLES = 'echo "$1"; echo "$LR"; echo "$DEPTH"; echo "$SEED"; echo "$MODE"\n'
A_PATTERN = '{ pattern = "reached (.*) after" }'
A_FILE = '{ file = "result.json", key = "a.b" }'
INTO_A_FILE = 'mkdir -p "$OUT"; echo "{\\"a\\": {\\"b\\": 0.25}}" > "$OUT/result.json"'


def user(product: Product, program: str, argv: str = ARGV, more: str = "", **how: str) -> None:
    """Someone with a program in a shell's language, which starts in a millisecond."""
    usual = {"score": '"score"', "send": "environment"}
    product.write("train.sh", program)
    product.write("search.toml", SEARCH.format(argv=argv, more=more, **(usual | how)))


@pytest.mark.parametrize(
    ("send", "argv", "program", "form", "score"),
    [
        ("key=value", ARGV, WORDS + "echo score: 9; echo score=0.25", "{name}={value}", '"score"'),
        ("flags", ARGV, WORDS + "echo reached 0.25 after 1 h", "--{name}={value}", A_PATTERN),
        ("argv", PLACED, WORDS + INTO_A_FILE, "{value}", A_FILE),
        ("environment", ARGV, VARIABLES + "echo score: 0.25", "{value}", '"score"'),
        ("json", ARGV, 'echo "$1"; cat "$KNOBS_FILE"; echo score: 0.25', '"{name}": ', '"score"'),
    ],
)
def test_knobs_seed_and_budget_arrive_as_was_asked_and_the_score_comes_back(
    product: Product, send: str, argv: str, program: str, form: str, score: str
) -> None:
    user(product, program, argv, score=score, send=send)
    product(*MIN, *INLINE)
    run = product.run_directory()
    books = Books.of(run)
    assert {attempt.score for attempt in books.attempts} == {0.25}
    places = [file.parent for file in run.glob("eval/**/config.json")]
    assert len(places) == len(books.attempts)
    for place in places:
        config = json.loads((place / "config.json").read_text())
        said = (place / "stdout.txt").read_text()
        lr, depth = float(f"{config['knobs']['lr']:.12g}"), config["knobs"]["depth"]
        given = {"lr": lr, "depth": depth, "seed": config["seed"], "mode": "a b;$HOME"}
        assert isinstance(depth, int)
        assert "100" in said.splitlines()
        if send == "json":
            assert json.loads(said[said.index("{") : said.index("}") + 1]) == given
        else:
            expected = {form.format(name=name, value=value) for name, value in given.items()}
            assert expected <= set(said.splitlines())
    product.verify()


def test_programs_that_fail_are_their_configurations_failures(product: Product) -> None:
    endings = {
        "echo of another shape >&2; exit 3": ("error", "of another shape"),
        "echo score: nan": ("nan", "score is nan"),
        "echo loss exploded": ("nan", "loss exploded"),
        "echo done": ("error", "'done'"),
        "echo epoch 3 score: 0.51; echo end": ("error", "epoch 3"),
        "kill -9 $$": ("error", "SIGKILL"),
    }
    cases = "".join(f"{number}) {words};;\n" for number, words in enumerate(endings))
    program = (
        'case "$LR" in 0.003) echo score: 1; exit;; esac\n'
        "n=$(ls -d turn-* 2>/dev/null | wc -l); mkdir turn-$n\n"
        f"case $n in\n{cases}*) echo score: 1;;\nesac\n"
    )
    user(product, program, more='failures = { "loss exploded" = "nan" }')
    product(*MIN, *INLINE)
    failed = [one for one in Books.of(product.run_directory()).attempts if one.status != "ok"]
    assert len(failed) == len(endings)
    for ending in endings.values():
        assert (
            len([one for one in failed if one.status == ending[0] and ending[1] in one.cause]) == 1
        )
    assert "of another shape" in " ".join(product("report").text.split())
    product.verify()


@pytest.mark.parametrize(
    ("line", "goes_on"),
    [
        ("cp train.sh runs/$SEED.sh", True),
        pytest.param(
            "date > runs/generated-$SEED.sh",
            True,
            marks=pytest.mark.xfail(
                strict=True,
                reason="a new file that a program writes counts as a change of its sources",
            ),
        ),
        ("echo '# edited' >> train.sh", False),
    ],
    ids=["copies itself", "writes a new file", "is edited"],
)
def test_a_search_is_of_the_sources_that_it_was_planned_with(
    product: Product, line: str, goes_on: bool
) -> None:
    user(product, f"mkdir -p runs\n{line}\necho score: 1\n", more='sources = ["*.sh"]')
    product(*MIN, *INLINE, code=0 if goes_on else 3)
    assert Books.of(product.run_directory()).is_concluded == goes_on
    product.verify()


def test_a_dry_run_shows_the_command_line_and_starts_nothing(product: Product) -> None:
    user(product, "touch started", send="key=value")
    shown = product.json("dry-run", "--config", "search.toml", "--knobs", "depth=3")
    assert {"100", "depth=3", "lr=0.003", "mode=a b;$HOME"} <= set(shown["program"]["argv"])
    assert not (product.folder / "started").exists()


@pytest.mark.parametrize(
    ("argv", "more", "word"),
    [
        ('["no-such-program", "{budget}"]', "", "no-such-program"),
        ('["python", "absent.py", "{budget}"]', "", "absent.py"),
        ('["sh", "train.sh", "{dept}", "{budget}"]', "", "dept"),
        ('["sh", "train.sh"]', "", "budget"),
        (ARGV, 'direction = "maximize"', "negative"),
    ],
)
def test_what_cannot_be_started_is_refused_in_one_line_before_anything_is_spent(
    product: Product, argv: str, more: str, word: str
) -> None:
    user(product, "echo score: 1", argv, more)
    refused = product(*MIN, *INLINE, code=2)
    assert word in refused.err
    assert len(refused.err.strip().splitlines()) == 1
    assert not list(product.folder.glob("**/ledger.jsonl"))
