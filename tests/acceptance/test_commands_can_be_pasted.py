"""Every command that the product prints can be pasted into the shell that it was printed in."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.product import PROGRAM, REPOSITORY, Product

BASH = "/bin/bash"
LISTED = re.compile(r"^│ ([a-z][\w-]*)  ", re.MULTILINE)
EXAMPLE = re.compile(rf"^ *{PROGRAM} (.*)$", re.MULTILINE)
SESSION = (
    *("init --template phase1", "init --template function --out 'my file.toml'"),
    *2 * ("calibrate --objective sphere --executor inline",),
    "phase1 --tier target --generations 3 --run-id one --objective sphere --executor inline",
    "phase1 --tier min --run-id bad --objective sphere --executor inline --set failure_rate=1",
    *("best one", "status one", "report one", "report one --json", "report bad --json"),
    *("explain one", "doctor --quick", "verify one", "plan phase1", "phase1 --teir min"),
)
READS = re.compile(r"(best|explain|plan|report|status|verify) (?!.*(--train|my file))")
"""Carried out; what starts something, or needs a file that is yet to be written, is parsed."""


Call = Callable[[Path], tuple[str, str]]  # how it is called, and PATH; the place is for files


def module_elsewhere(_: Path) -> tuple[str, str]:
    return f"{sys.executable} -m orchestrator", os.defpath


def module(_: Path) -> tuple[str, str]:
    return "python -m orchestrator", f"{Path(sys.executable).parent}:{os.defpath}"


def installed(place: Path) -> tuple[str, str]:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    name, function = project["scripts"]["orchestrator"].split(":")
    script = place / "orchestrator"
    script.write_text(f"#!{sys.executable}\nfrom {name} import {function}\n{function}()\n")
    script.chmod(0o755)
    return script.name, f"{place}:{os.defpath}"


def scripts_run(place: Path) -> tuple[str, str]:
    checkout = place / "my checkout"
    for folder in ("scripts", ".venv/bin"):
        (checkout / folder).mkdir(parents=True)
    for name in ("scripts/run", "scripts/_venv.sh", "pyproject.toml"):
        (checkout / name).symlink_to(REPOSITORY / name)
    python = checkout / ".venv/bin/python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    stamp = 'printf "%s %s data" "$(cksum <pyproject.toml)" "$(pwd -P)" >.venv/.installed'
    subprocess.run([BASH, "-c", stamp], cwd=checkout, check=True)
    return "'../my checkout/scripts/run'", os.defpath


def shell(product: Product, line: str, path: str, code: int = 0) -> str:
    variables = {**product.environment({"PATH": path, "COLUMNS": "300"}), "CMAES_PROGRAM": ""}
    bash = [BASH, "-c", f"cd {product.folder}; ({line}) 2>&1"]
    done = subprocess.run(bash, env=variables, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == code, done
    assert "Traceback" not in done.stdout
    return done.stdout


@pytest.mark.parametrize("call", [module_elsewhere, module, installed, scripts_run])
def test_the_program_is_named_as_it_was_called(product: Product, call: Call) -> None:
    called, path = call(product.folder.parent)
    refused = shell(product, f"{called} status --no-such-option", path, code=2)
    (see,) = re.findall(r"See: (.*)", refused)
    examples = shell(product, see, path).partition("Examples:")[2].strip().splitlines()
    assert "no run" in shell(product, examples[0], path, code=2)


def test_a_python_without_the_product_says_so_in_one_line(product: Product) -> None:
    error = shell(product, f"{sys.executable} -S -m orchestrator doctor", os.defpath, code=2)
    assert "scripts/run" in error
    assert len(error.splitlines()) == 1


def commands_in(text: str) -> set[str]:
    """Those that end a line after a colon, or stand in a comment or in JSON; none to fill in."""
    ends = rf"(?:^[^\n]*: {PROGRAM} ([^\n`]+)|^# +{PROGRAM} (.+?)(?:  .*)?)$"
    found = ["".join(parts) for parts in re.findall(ends, text, re.MULTILINE)]
    documents = re.findall(rf'^ *("{PROGRAM} .*"),?$', text, re.MULTILINE)
    found += [json.loads(line).removeprefix(f"{PROGRAM} ") for line in documents]
    to_fill_in = re.compile(r"THIS-FILE|WHY|MORE|PATH|FILE|\.\.\.|with the same")
    return {line.strip() for line in found if not to_fill_in.search(line)}


def test_what_a_session_prints_can_be_pasted(product: Product) -> None:
    printed = "".join(product(*shlex.split(line), code=None).text for line in SESSION)
    found = commands_in(printed + (product.folder / "my file.toml").read_text())
    assert len(found) > 12, found
    for line in sorted(found):
        product(*shlex.split(line), *([] if READS.match(line) else ["--help"]))
    product.verify("one")


def test_the_examples_in_help_have_options_that_there_are(product: Product) -> None:
    waiting, helps = [""], dict[str, str]()
    while waiting:
        name = waiting.pop()
        helps[name] = product(*name.split(), "--help").out
        if re.search(r"─ (Commands|Run) ─", helps[name]):
            waiting += [f"{name} {one}".strip() for one in LISTED.findall(helps[name])]
    assert len(helps) > 15
    for line in EXAMPLE.findall("".join(helps.values())):
        command = max((name for name in helps if f"{line} ".startswith(f"{name} ")), key=len)
        assert all(word in helps[command] for word in line.split() if word[:2] == "--"), line
