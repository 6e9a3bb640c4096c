"""What a program sees of our environment."""

import pytest

from objectives.programs.environment import check_given, cleaned

OURS = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "LC_ALL": "C.UTF-8",
    "OMP_NUM_THREADS": "2",
    "CUDA_VISIBLE_DEVICES": "3",
    "ATTEMPT_ID": "this-attempt",
}


def test_what_programs_need_is_let_through() -> None:
    assert cleaned((), {}, OURS) == {**OURS, "PYTHONUNBUFFERED": "1"}


@pytest.mark.parametrize(
    "name",
    [
        *("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "GROUP_RANK"),
        *("HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "RAY_AUTH_TOKEN"),
        *("PYTHONPATH", "PYTHONSTARTUP", "LD_PRELOAD", "GIT_DIR", "SLURM_PROCID", "WORD"),
    ],
)
def test_what_makes_it_one_of_many_and_what_is_secret_stays_behind(name: str) -> None:
    assert name not in cleaned((), {}, {**OURS, name: "value"})


def test_what_is_asked_for_by_name_is_let_through() -> None:
    ours = {**OURS, "HF_TOKEN": "hf_1", "HF_TOKENS": "2"}
    found = cleaned(("HF_TOKEN", "ABSENT"), {}, ours)
    assert found["HF_TOKEN"] == ours["HF_TOKEN"]
    assert found.keys() - OURS.keys() == {"HF_TOKEN", "PYTHONUNBUFFERED"}


def test_what_is_given_goes_before_what_is_there() -> None:
    found = cleaned((), {"OMP_NUM_THREADS": "4", "PYTHONUNBUFFERED": ""}, OURS)
    assert found["OMP_NUM_THREADS"] == "4"
    assert found["PYTHONUNBUFFERED"] == ""


def test_its_order_is_always_the_same() -> None:
    found = cleaned((), {"A": "1", "ZZ": "2"}, dict(reversed(OURS.items())))
    assert list(found) == sorted(found)


def test_it_is_ours_where_nobody_says_whose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    monkeypatch.setenv("RANK", "0")
    found = cleaned((), {})
    assert found["TZ"] == "Europe/Berlin"
    assert "RANK" not in found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ATTEMPT_ID", "environment.ATTEMPT_ID: by it the processes of an evaluation are found"),
        ("A=B", "'A=B' is no name of an environment variable"),
        ("", "'' is no name"),
        ("HF_TOKEN", r'pass_environment = \["HF_TOKEN"\]'),
    ],
)
def test_what_no_setting_can_give_is_refused_by_name(name: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected) as caught:
        check_given({"FINE": "1", name: "geheim"})
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "NUM_TOKENS", "MONKEY"])
def test_what_only_sounds_like_a_secret_can_be_given(name: str) -> None:
    check_given({name: "business"})
