"""Documents are followed command by command, and differences are found."""

import os
from pathlib import Path

import pytest

from tests.console import File, Follower, Step, read, unlike

DOCUMENT = """
# Greetings

```python
# hello.py
print("hello", 3)
```

Then
```console
$ python3 hello.py
hello 7
$ printf 'a\\nb\\nc\\nd\\n'
a
...
d
```

<!-- exit 3 -->
```console
$ echo bye; exit 3
bye
```
"""


def follow(document: str, directory: Path) -> None:
    Follower(directory, os.environ, seconds=30).follow(document)


def shell_of(document: str) -> str:
    """The same, whose last command leaves the terminal."""
    return document.replace("exit 3\n", "(exit 3)\n")


def test_a_document_is_its_files_and_its_commands_in_order() -> None:
    assert list(read(DOCUMENT)) == [
        File("hello.py", '# hello.py\nprint("hello", 3)\n'),
        Step("python3 hello.py", ("hello 7",)),
        Step("printf 'a\\nb\\nc\\nd\\n'", ("a", "...", "d")),
        Step("echo bye; exit 3", ("bye",), code=3),
    ]


def test_a_document_that_says_what_happens_is_followed_to_its_end(tmp_path: Path) -> None:
    follow(shell_of(DOCUMENT), tmp_path)


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("hello 7", "hullo 7", "not seen: hullo 7"),
        ("hello 7", "hello seven", "not seen: hello seven"),
        ("hello 7\n", "", "not seen: nothing more, but there is: hello 3"),
        ("$ python3 hello.py", "$ python3 hallo.py", "exit code 2, not 0"),
        ("...\nd", "d", "not seen: a d"),
        ("...\nd", "...\nc", "not seen: c"),
        ("exit 3 -->", "exit 4 -->", "exit code 3, not 4"),
    ],
)
def test_what_a_document_has_wrong_is_found(
    right: str, wrong: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match=said):
        follow(shell_of(DOCUMENT).replace(right, wrong), tmp_path)


def test_a_command_that_runs_on_is_killed_from_another_terminal(tmp_path: Path) -> None:
    follow(
        """
<!-- runs on -->
```console
$ bash -c 'echo pid $$; exec sleep 60'
pid 12
```
```console
$ kill -9 12
```
<!-- exit 137 -->
```console
Killed
```
""",
        tmp_path,
    )


@pytest.mark.parametrize(
    ("shown", "seen"),
    [
        ("in 5.4 s", "in 12.25 s"),
        ("over in 43 s", "over in 1 min 02 s"),
        ("[ 1/120]", "[12/120]"),
        ("step -0.5, 3e+10", "step +1, 1.2e-08"),
        ("████▒░ 3 of 4", "█░░░░░░ 1 of 9"),
        ("a ... z", "a b c z"),
    ],
)
def test_numbers_times_and_bars_may_differ(shown: str, seen: str) -> None:
    assert unlike((shown,), [seen]) is None


@pytest.mark.parametrize(
    ("shown", "seen", "unseen"),
    [
        ("in 5.4 s", "in 5.4 MiB", "in 5.4 s"),
        ("x0 is 1", "x1 is 1", "x0 is 1"),
        ("ab ... yz", "ab c xyz", "yz"),
        ("a", "a b", "a"),
    ],
)
def test_words_may_not(shown: str, seen: str, unseen: str) -> None:
    assert unlike((shown,), [seen]) == unseen
