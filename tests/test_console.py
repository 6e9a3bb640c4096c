"""Documents are followed command by command, and differences are found."""

import os
from pathlib import Path

import pytest

from tests.console import Follower, unlike

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


@pytest.mark.parametrize(
    ("shown", "seen", "unseen"),
    [
        ("in 5.4 s", "in 1 min 02 s", None),
        ("[ 1/120]", "[12/120]", None),
        ("step -0.5, 3e+10", "step +1, 1.2e-08", None),
        ("a ... z", "a b c z", None),
        ("in 5.4 s", "in 5.4 MiB", "in 5.4 s"),
        ("x0 is 1", "x1 is 1", "x0 is 1"),
        ("ab ... yz", "ab c xyz", "yz"),
        ("a", "a b", "a"),
    ],
)
def test_numbers_and_times_may_differ_and_words_may_not(
    shown: str, seen: str, unseen: str | None
) -> None:
    assert unlike((shown,), [seen]) == unseen
