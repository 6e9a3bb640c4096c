"""What no file may say: one clear line, exit code 2, nothing written, and nothing hangs."""

import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from objectives.files import LARGEST
from orchestrator.cli.set_up import explain_file
from orchestrator.config import Layers, format_value, parse_assignments, read_document, resolve

Command = Callable[..., Any]
Write = Callable[..., Path]

SPHERE = 'objective = "sphere"\n[backend]\nexecutor = "inline"\nworkers = 1\n'


def assert_one_clear_error(answer: Any, *named: str) -> None:
    assert answer.code == 2, answer
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
    line = answer.err.removesuffix("\n")
    assert line.isprintable()
    assert len(line) < 2500
    for words in named:
        assert words in line


def refusal(file: Path) -> str:
    """What a command would say of the file: the same words as on the command line."""
    with pytest.raises(ValueError, match=r".") as raised:
        explain_file(resolve(Layers(file)), as_json=True)
    line = str(raised.value)
    assert line
    assert "\n" not in line.replace("a\nb", "")
    assert len(line) < 2500
    return line


def left(place: Path) -> set[str]:
    return {path.name for path in place.iterdir()}


# Keys

KEYS = [
    ("[serach]\ntier = 'min'", "unknown key (run.toml) 'serach'. Did you mean 'search'?"),
    ("[search]\nteir = 'min'", "unknown key in [search] (run.toml) 'teir'. Did you mean 'tier'?"),
    ("[budget]\nmax_eval = 3", "key in [budget] (run.toml) 'max_eval'. Did you mean 'max_evals'?"),
    ("[thresholds]\ngo_gian = 0.1", "[thresholds] (run.toml) 'go_gian'. Did you mean 'go_gain'?"),
    ("objectiv = 'sphere'", "unknown key (run.toml) 'objectiv'. Did you mean 'objective'?"),
    ("search.follows = 'x'", "'follows'"),  # a field's name is no key
    ("tier = 'min'", "run.toml: tier belongs below a line [search]"),
    ("seed = 3", "run.toml: seed belongs below a line [search] or [evaluation]"),
    ("go_gain = 0.02", "run.toml: go_gain belongs below a line [thresholds]"),
    ("n_embd = 64", "A setting of the objective belongs below a line [training]"),
    (
        "[training]\nn_embed = 64",
        "nanochat setting (file run.toml) 'n_embed'. Did you mean 'n_embd'?",
    ),
    ("[training]\ntier = 'min'", "Or is it search.tier?"),
    (
        "objective='sphere'\n[training]\ndimensio=3",
        "(file run.toml) 'dimensio'. Did you mean 'dime",
    ),
    ("objective='sphere'\n[training]\nn_embd=3", "unknown sphere setting (file run.toml) 'n_embd'"),
    ("objective='spere'", "unknown objective 'spere'. Did you mean 'sphere'?"),
    ("preset='quik'", "unknown preset 'quik'. Did you mean 'quick'?"),
    ("profile='Fast'", "unknown profile 'Fast'. Did you mean 'fast'?"),
    ("preset=3", "unknown preset '3'. Expected one of quick"),
    ("objective='sphere'\npreset='quick'", "--preset: 'sphere' has no presets, got 'quick'"),
    ("'' = 3", "unknown key (run.toml) ''"),
    ("'a\\nb' = 3", "unknown key (run.toml)"),
    ('"\\u001b[31m" = 3', "unknown key (run.toml)"),
    ("[search]\n'ti er' = 3", "unknown key in [search] (run.toml) 'ti er'"),
    ("'search.tier' = 'min'\n[search]\ntier = 'max'", "run.toml: search.tier is given twice"),
    (
        "[search.tier]\nx = 1",
        "file run.toml: search.tier: Input should be 'min', 'target' or 'max'",
    ),
    ("search = 3", "run.toml: search: expected a table [search], got 3"),
    ("[[search]]\ntier = 'min'", "search: expected a table [search], got [{'tier': 'min'}]"),
    ("[objective]\nname = 'x'", "file run.toml: objective: Input should be a valid string, got {"),
]


@pytest.mark.parametrize(("text", "named"), KEYS, ids=[text for text, _ in KEYS])
def test_a_key_that_nobody_knows_is_refused_by_name(
    text: str, named: str, write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write(text)
    monkeypatch.chdir(tmp_path)

    assert named in refusal(Path("run.toml"))


# Values

VALUES = [
    ("[search]\ntier = 3", "file run.toml: search.tier: Input should be 'min', 'target' or 'max'"),
    (
        "[search]\ntier = 'huge'",
        "search.tier: Input should be 'min', 'target' or 'max', got 'huge'",
    ),
    ("[search]\nseed = 0", "search.seed: Input should be greater than or equal to 1, got 0"),
    ("[search]\nseed = 4294967296", "search.seed: Input should be less than 4294967296"),
    ("[search]\nseed = 1.0", "search.seed: Input should be a valid integer, got 1.0"),
    ("[search]\nseed = true", "search.seed: Input should be a valid integer, got True"),
    ("[search]\nseed = '1'", "search.seed: Input should be a valid integer, got '1'"),
    ("[search]\nsigma0 = 0.5", "search.sigma0: Input should be less than or equal to 0.3, got 0.5"),
    (
        "[search]\nsigma0 = 0",
        "search.sigma0: Input should be greater than or equal to 0.000001",
    ),
    ("[search]\nsigma0 = nan", "search.sigma0: Input should be a finite number, got nan"),
    ("[search]\nsigma0 = inf", "search.sigma0: Input should be a finite number, got inf"),
    (
        "[search]\nsigma0 = 2026-01-01",
        "search.sigma0: Input should be a valid number, got datetime",
    ),
    ("[search]\nproxy = 2.0", "search.proxy: Input should be less than 1, got 2.0"),
    (
        "[search]\nphase = 'phase3'",
        "search.phase: Input should be 'phase1' or 'phase2', got 'phase3'",
    ),
    ("[search]\nphase = 'campaign'", "search.phase: Input should be 'phase1' or 'phase2'"),
    ("[search]\npopulation = 8.0", "search.population: Input should be a valid integer, got 8.0"),
    ("[budget]\nmax_evals = 0", "budget.max_evals: Input should be greater than or equal to 1"),
    ("[budget]\nmax_hours = -1", "budget.max_hours: Input should be greater than 0, got -1"),
    ("[budget]\nmax_hours = 0", "budget.max_hours: Input should be greater than 0, got 0"),
    (
        "[budget]\nmax_hours = 1e300",
        "budget.max_hours: Input should be less than or equal to 1000000",
    ),
    (
        "[budget]\nmax_device_hours = inf",
        "budget.max_device_hours: Input should be a finite number",
    ),
    (
        "[budget]\nprice_per_device_hour = -1.0",
        "budget.price_per_device_hour: Input should be great",
    ),
    ("[budget]\nwindow = 12", "budget.window: Input should be a valid string, got 12"),
    (
        "[evaluation]\nseed = -1",
        "evaluation.seed: Input should be greater than or equal to 1, got -1",
    ),
    (
        "[evaluation]\nlimit_seconds = 0.0",
        "evaluation.limit_seconds: Input should be greater than 0",
    ),
    (
        "[evaluation]\nassume_eval_seconds = nan",
        "evaluation.assume_eval_seconds: Input should be a f",
    ),
    (
        "[verdict]\nconfirm_seeds = -1",
        "verdict.confirm_seeds: Input should be greater than or equal",
    ),
    (
        "[verdict]\nconfirm_seeds = 100000",
        "verdict.confirm_seeds: Input should be less than or equal",
    ),
    (
        "[thresholds]\ngo_gain = '1%'",
        "thresholds.go_gain: Input should be a valid number, got '1%'",
    ),
    (
        "[thresholds]\ngo_seeds = 1",
        "thresholds.go_seeds: Input should be greater than or equal to 2",
    ),
    ("[thresholds]\ngo_seeds = true", "thresholds.go_seeds: Input should be a valid integer"),
    ("[thresholds]\ngo_gain = nan", "thresholds.go_gain: Input should be a finite number, got nan"),
    (
        "[backend]\nexecutor = 'slurm'",
        "backend.executor: Input should be 'ray', 'local' or 'inline'",
    ),
    (
        "[backend]\nworkers = 0",
        "backend.workers: Input should be greater than or equal to 1, got 0",
    ),
    (
        "[backend]\nallow_network_fs = 1",
        "backend.allow_network_fs: Input should be a valid boolean",
    ),
    ("runs_dir = ''", "file run.toml: runs_dir: expected a directory's name, got ''"),
    ("runs_dir = '''a\nb'''", "file run.toml: runs_dir: expected a directory's name, got 'a\\nb'"),
    ("runs_dir = 3", "file run.toml: runs_dir: Input should be a valid string, got 3"),
    ("[training]\nnoise = 'much'", "noise: Input should be a valid number"),
    ("[training]\nnoise = 'much'", "(file run.toml)"),
    ("[training]\ndimension = 1", "dimension: Input should be greater than or equal to 2, got 1"),
    ("[training]\nnoise = nan", "noise: Input should be a finite number"),
    ("[training]\nnoise = 2026-01-01T00:00:00", "noise: Input should be a valid number"),
]


@pytest.mark.parametrize(("text", "named"), VALUES, ids=[text for text, _ in VALUES])
def test_a_value_that_cannot_be_is_refused_with_what_came(
    text: str, named: str, write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write(f"objective = 'sphere'\n{text}")
    monkeypatch.chdir(tmp_path)

    assert named in refusal(Path("run.toml"))


@pytest.mark.parametrize("text", ["[search]\ntier = 3", "[serach]", "[training]\nnoise = 'a'"])
@pytest.mark.parametrize(
    "verb",
    [
        *(("explain", "run.toml"), ("run", "run.toml"), ("phase1", "run.toml")),
        *(("plan", "run.toml"), ("plan", "run.toml")),
        ("check", "knobs", "run.toml"),
    ],
    ids=" ".join,
)
def test_every_command_that_takes_a_file_refuses_it_alike(
    verb: tuple[str, ...], text: str, command: Command, write: Write, tmp_path: Path
) -> None:
    write(f"objective = 'sphere'\n{text}")

    assert_one_clear_error(command(*verb), "run.toml")
    assert left(tmp_path) == {"run.toml"}


def test_a_mistake_names_the_layer_that_made_it(command: Command, write: Write) -> None:
    write("objective = 'sphere'\n[search]\nseed = 5\n")

    typed = command("plan", "run.toml", "--seed", "0")
    parse_assignments = command("plan", "run.toml", "--set", "search.seed=0")

    assert_one_clear_error(typed, "--seed: Input should be greater than or equal to 1, got 0")
    assert "run.toml" not in typed.err
    assert_one_clear_error(
        parse_assignments, "--set: search.seed: Input should be greater than or equal"
    )


def test_several_mistakes_are_all_named_in_one_line(command: Command, write: Write) -> None:
    write("objective = 'sphere'\n[search]\nseed = 0\ntier = 'all'\n")

    answer = command("explain", "run.toml")

    assert_one_clear_error(answer, "file run.toml: search.tier: ", "; file run.toml: search.seed: ")


def test_a_mistake_is_an_answer_in_json_too(command: Command, write: Write) -> None:
    write("[search]\nteir = 'min'\n")

    answer = command("explain", "run.toml", "--json")

    assert_one_clear_error(answer, "Did you mean 'tier'?")
    assert '"exit_code": 2' in answer.out


# Combinations

FOLLOWING = "[search]\nphase = 'phase2'\n"
COMBINATIONS = [
    ("[search]\nfrom = 'x'", "--from: only a phase2 follows a run, got 'x' (file run.toml)"),
    ("[search]\nvariant = 'robust'", "--variant: only a phase2 follows a run, got 'robust' (file"),
    (FOLLOWING, "--from: which phase 1 shall it follow?"),
    (FOLLOWING, "from, in [search]"),
    (FOLLOWING + "from = 'x'", "--variant: expected robust"),
    ("[budget]\nmax_cost = 5.0", "[budget] max_cost 5 needs a price_per_device_hour"),
    ("[budget]\nwindow = '10m'", "leaves nothing before its safety margin of 1800 s"),
    ("[budget]\nwindow = 'soon'", "--window: expected a duration such as 12h"),
    (
        "[budget]\nwindow = '12h'\nsafety_margin = 'some'",
        "budget.safety_margin: expected a duration",
    ),
    ("[search]\nknown = 'nowhere.toml'", "nowhere.toml"),
    ("[factors]\nnoise = []", "factors.noise: expected a list of values, or a table of levels"),
    ("[factors]", "a campaign needs conditions"),
    ("[campaign]", "a campaign needs conditions"),
    ("[campaign]\n[factors]", "a campaign needs conditions"),
    ("[campaign]\nname = 'rates'\n[factors]", "a campaign needs conditions"),
]


@pytest.mark.parametrize(("text", "named"), COMBINATIONS, ids=[text for text, _ in COMBINATIONS])
def test_a_combination_that_cannot_be_is_refused_before_anything_begins(
    text: str, named: str, command: Command, write: Write, tmp_path: Path
) -> None:
    write(f"objective = 'sphere'\n{text}")

    is_campaign = "[campaign]" in text or "[factors]" in text  # which has no tier
    tier = () if is_campaign else ("--tier", "min")
    for verb in (("explain", "run.toml"), ("run", "run.toml", *tier)):
        assert_one_clear_error(command(*verb), named)
    assert left(tmp_path) == {"run.toml"}


@pytest.mark.parametrize(
    ("verb", "text", "named"),
    [
        (("run", "run.toml"), SPHERE, "--tier: say how much to spend"),
        (("run", "run.toml", "--config", "run.toml"), SPHERE, "No such option: --config"),
        (("run", "run.toml", "run.toml"), SPHERE, "unexpected extra argument"),
        (("run",), SPHERE, "FILE"),
        (("run", "run.toml", "--executor", "inline", "--address", "h:1"), SPHERE, "--address"),
        (("run", "run.toml", "--tier", "min"), SPHERE + "address = 'h:1'", "--address joins a Ray"),
        (("phase1", "run.toml"), SPHERE + "[campaign]", "describes a campaign"),
        (("plan", "run.toml"), SPHERE + "[factors]\nx=[1]", "unknown sphere setting 'x'"),
        (("phase1", "nowhere.toml"), SPHERE, "nowhere.toml cannot be read: No such"),
        (("check", "knobs", "nowhere.toml"), SPHERE, "nowhere.toml cannot be read"),
        (("calibrate", "--set", "campaign.seeds=[1]"), SPHERE, "a campaign is described in a file"),
        (("phase1", "--set", "factors.noise=[0.1]"), SPHERE, "a campaign is described in a file"),
        (("explain", "nowhere.toml"), SPHERE, "nowhere.toml cannot be read: No such file"),
        (("explain", "nowhere", "--set", "n_embd=3"), SPHERE, "are for a configuration file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_command_that_has_no_such_file_or_use_for_it_says_so(
    verb: tuple[str, ...], text: str, named: str, command: Command, write: Write, tmp_path: Path
) -> None:
    write(text)

    assert_one_clear_error(command(*verb), named)
    assert left(tmp_path) == {"run.toml"}


# --set


@pytest.mark.parametrize(
    ("sets", "named"),
    [
        (["search.tier"], "--set: expected KEY=VALUE, got 'search.tier'"),
        (["=3"], "--set: expected KEY=VALUE, got '=3'"),
        ([" =3"], "--set: expected KEY=VALUE"),
        (["search.seed=3", "search.seed=4"], "--set: search.seed is given twice"),
        (["search.seed=3", " search.seed =3"], "--set: search.seed is given twice"),
        (["noise=0.01", "training.noise=0.02"], "--set: training.noise is given twice"),
        (["search.sed=3"], "unknown key in [search] (--set) 'sed'. Did you mean 'seed'?"),
        (["serach.seed=3"], "unknown table (--set) 'serach'. Did you mean 'search'?"),
        (["search.seed.x=3"], "unknown key in [search] (--set) 'seed.x'. Did you mean 'seed'?"),
        (["search.=3"], "unknown key in [search] (--set) ''"),
        ([".seed=3"], "unknown table (--set) ''"),
        (["search.seed=three"], "--set: search.seed: Input should be a valid integer, got 'three'"),
        (["search.seed=1.5"], "--set: search.seed: Input should be a valid integer, got 1.5"),
        (["search.sigma0=NaN"], "--set: search.sigma0: Input should be a valid number, got 'NaN'"),
        (["tier=min"], "unknown sphere setting (--set) 'tier'"),
        (["tier=min"], "Or is it search.tier?"),
        (["objective=spere"], "unknown objective 'spere'. Did you mean 'sphere'?"),
        (['search.run_id={"a": 1, "a": 2}'], "names a key twice"),
        (["search.run_id=" + "[" * 9000], "--run-id"),
        (["search.run_id=" + "x" * 9000], "--run-id: expected 1 to 64"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else None,
)
def test_an_assignment_that_is_none_is_refused(
    sets: list[str], named: str, command: Command, write: Write, tmp_path: Path
) -> None:
    write(SPHERE)

    answer = command("run", "run.toml", "--tier", "min", *(w for s in sets for w in ("--set", s)))

    assert answer.code == 2
    assert answer.err.count("\n") == 1
    assert named in answer.err
    assert left(tmp_path) == {"run.toml"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("0.5", 0.5),
        ("1e-2", 0.01),
        ("true", True),
        ("null", None),
        ('"5"', "5"),
        ("min", "min"),
        ("", ""),
        ("a=b", "a=b"),
        ("[1, 2]", [1, 2]),
        ('{"a": 1}', {"a": 1}),
        ("[1, 2", "[1, 2"),
        ("07", "07"),
        (" 5 ", 5),
        ("\u0665", "\u0665"),
    ],
)
def test_a_value_is_json_where_it_can_be_and_text_otherwise(text: str, value: Any) -> None:
    assert parse_assignments([f"slurm.x={text}"]) == {"slurm.x": value}


@pytest.mark.parametrize(
    "value",
    [
        *(5, 0.5, True, None, "5", "true", "null", "", "min", '"quoted"', "a=b", " 5 ", "ünï"),
        *("[1, 2", [1, "2"], {"a": {"b": [None, "x"]}}, "{}", "\n"),
    ],
)
def test_what_is_written_as_an_assignment_is_read_back_as_it_was(value: Any) -> None:
    assert parse_assignments([f"slurm.x={format_value(value)}"]) == {"slurm.x": value}


# Files that are none


def no_utf8(file: Path) -> None:
    file.write_bytes('objective = "sphäre"'.encode("latin-1"))


def make_binary(file: Path) -> None:
    file.write_bytes(bytes(range(256)) * 10)


def make_huge(file: Path) -> None:
    file.write_text(f"objective = '{'x' * LARGEST}'")


def make_deep(file: Path) -> None:
    file.write_text(f"objective = {'[' * 50_000}{']' * 50_000}")


def make_deeply_dotted(file: Path) -> None:
    file.write_text(f"[search]\ntier{'.a' * 1500} = 3")


def make_a_directory(file: Path) -> None:
    file.mkdir()


def make_a_pipe(file: Path) -> None:
    os.mkfifo(file)


def make_a_broken_link(file: Path) -> None:
    file.symlink_to("nowhere.toml")


def make_a_circle(file: Path) -> None:
    file.symlink_to(file.name)


def make_endless(file: Path) -> None:
    file.symlink_to("/dev/zero")


def make_twice(file: Path) -> None:
    file.write_text("[search]\nseed = 1\nseed = 2\n")


def make_a_table_twice(file: Path) -> None:
    file.write_text("[search]\nseed = 1\n[search]\ntier = 'min'\n")


def make_no_toml(file: Path) -> None:
    file.write_text("{'objective': 'sphere'}")


def make_carriage_returns(file: Path) -> None:
    file.write_bytes(b"objective = 'sphere'\r[search]\r")


NO_FILES = [
    (no_utf8, "run.toml is no text in UTF-8: 'utf-8' codec can't decode"),
    (make_binary, "run.toml is no text in UTF-8"),
    (make_huge, "run.toml: expected 1048576 bytes at most"),
    (make_deep, "run.toml is no TOML file: maximum recursion depth exceeded"),
    (make_deeply_dotted, "run.toml: search.tier: expected tables and lists of at most 16 levels"),
    (make_a_directory, "run.toml"),
    (make_a_pipe, "run.toml is no file"),
    (make_a_broken_link, "run.toml cannot be read: No such file"),
    (make_a_circle, "run.toml cannot be read: Too many levels of symbolic links"),
    (make_endless, "run.toml is no file"),
    (make_twice, "run.toml is no TOML file: Cannot overwrite a value (at line 3"),
    (make_a_table_twice, "run.toml is no TOML file: Cannot declare ('search',) twice"),
    (make_no_toml, "run.toml is no TOML file: Invalid statement (at line 1, column 1)"),
    (make_carriage_returns, "run.toml is no TOML file"),
]


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("make", "named"), NO_FILES, ids=[m.__name__ for m, _ in NO_FILES])
def test_what_is_no_configuration_is_refused_and_hangs_nobody(
    make: Callable[[Path], None], named: str, command: Command, tmp_path: Path
) -> None:
    make(tmp_path / "run.toml")

    verbs = (
        ("explain", "run.toml"),
        ("run", "run.toml"),
        ("plan", "run.toml"),
    )
    for verb in verbs:
        answer = command(*verb)
        assert_one_clear_error(answer, "run.toml")
        if verb[0] != "explain" or make is not make_a_directory:  # which could be a run's
            assert named in answer.err
    assert left(tmp_path) == {"run.toml"}


def test_a_file_that_nobody_may_read_is_refused(
    command: Command, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(SPHERE)
    file.chmod(0)
    if os.access(file, os.R_OK):  # root may read everything

        def refuse(path: Path, *_: Any, **__: Any) -> Any:
            raise PermissionError(13, "Permission denied", str(path))

        monkeypatch.setattr(Path, "open", refuse)

    answer = command("run", "run.toml")

    assert_one_clear_error(answer, "run.toml cannot be read: Permission denied")


def test_an_empty_file_is_a_search_of_nothing_but_defaults(command: Command, write: Write) -> None:
    write("")

    assert command("explain", "run.toml").code == 0
    assert_one_clear_error(command("run", "run.toml"), "--tier: say how much to spend")


@pytest.mark.timeout(20)
def test_a_file_of_a_twenty_thousand_keys_is_read_in_no_time(write: Write) -> None:
    text = "[slurm]\n" + "".join(f"k{n} = {n}\n" for n in range(20_000))

    assert len(read_document(write(text))) == 20_000


# Secrets

SECRET = "https://me:correcthorse@host/data"  # noqa: S105 - nobody's
SECRETS = [
    f"[training]\ndata = '{SECRET}'",
    f"[slurm]\nsetup = 'git clone {SECRET}'",
    f"[slurm]\nsetup = [['wget {SECRET}']]",
    f"[search]\ntier = '{SECRET}'",
    f"[search]\nfrom = '{SECRET}'",
    f"[backend]\naddress = '{SECRET}'",
    f"[factors]\ndata = ['{SECRET}']",
    f"[factors.data]\na = {{ data = '{SECRET}' }}",
    f"runs_dir = '{SECRET}'",
    f"objective = '{SECRET}'",
    f"preset = '{SECRET}'",
    f"[[campaign.conditions]]\nname = 'a'\ntraining.data = '{SECRET}'",
    f"[[campaign.conditions]]\nname = '{SECRET}'",
]


@pytest.mark.parametrize("text", SECRETS, ids=range(len(SECRETS)))
def test_a_password_in_a_url_is_refused_and_not_repeated(
    text: str, command: Command, write: Write, tmp_path: Path
) -> None:
    write(text)

    for verb in (("explain", "run.toml", "--json"), ("run", "run.toml", "--tier", "min")):
        answer = command(*verb)
        assert_one_clear_error(answer, "run.toml", "is a URL with a user name or a password in it")
        assert "correcthorse" not in answer.err + answer.out
    assert left(tmp_path) == {"run.toml"}


@pytest.mark.parametrize("key", ["n_embd", "data", "search.tier", "slurm.setup", "runs_dir"])
def test_a_password_that_is_assigned_is_not_repeated_either(
    key: str, command: Command, write: Write
) -> None:
    write("")

    answer = command("explain", "run.toml", "--set", f"{key}={SECRET}")

    assert_one_clear_error(
        answer, key.rpartition(".")[2], "is a URL with a user name or a password"
    )
    assert "correcthorse" not in answer.err


def test_what_the_tests_write_is_toml() -> None:
    """A test of refusals proves little when its file is broken in another way than it says."""
    texts = [text for text, _ in KEYS + VALUES + COMBINATIONS] + SECRETS
    for text in texts:
        tomllib.loads(text)


@pytest.mark.parametrize(
    ("objective", "template"), [("command", "command"), ("python:train:evaluate", "function")]
)
def test_a_program_of_which_nothing_is_said_is_sent_to_its_template(
    command: Command, objective: str, template: str
) -> None:
    answer = command("phase1", "--tier", "min", "--objective", objective)

    named = f"Begin with a file: python -m orchestrator init --template {template}"
    assert_one_clear_error(answer, "knobs: ", named)


def test_a_knob_that_cannot_be_names_its_key_its_bounds_and_the_file(
    command: Command, write: Write
) -> None:
    knob = '{ kind = "log10", min = 1e-3, max = 1.0, baseline = 10.0 }'
    write(f"objective = 'command'\n[training]\nargv = ['a']\nscore = 's'\nknobs.lr = {knob}\n")

    answer = command("explain", "run.toml")

    assert_one_clear_error(
        answer,
        "knobs.lr: baseline 10.0 lies outside its bounds, 0.001 to 1 (file run.toml)",
    )
