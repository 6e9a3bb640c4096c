"""Every command that the product prints can be pasted into the shell that it was printed in."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.product.product import PROGRAM, REPOSITORY, Product

SESSION = (
    *("init --template phase1", "init --template factorial --out 'my file.toml'"),
    *2 * ("calibrate --objective sphere --executor inline",),
    "phase1 --tier target --set search.generations=3 --run-id one --objective sphere "
    "--executor inline",
    *("best one", "report one", "report one --json", "status one"),
    *("doctor", "plan --verbose", "phase1 --teir min"),
)
READS = re.compile(r"(best|explain|plan|report|status|verify) (?!.*my file)")
"""Carried out; what starts something, or needs a file that is yet to be written, is parsed."""

COMMAND = re.compile(rf'(?:: |^#? *"?){PROGRAM} ([a-z].*?)(?:  .*|",?)?$', re.MULTILINE)
"""It ends a line after a colon, or has a line of its own: plain, in a comment, or in JSON."""
TO_FILL_IN = re.compile(r"[A-Z]{3}|\.\.\.|with the same")


def ways_to_call(place: Path) -> dict[str, str]:
    """As a module, by a script that is installed, and from a checkout: each with its PATH."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    name, function = project["scripts"]["orchestrator"].split(":")
    script = f"#!{sys.executable}\nfrom {name} import {function}\n{function}()\n"
    (place / "orchestrator").write_text(script)
    (place / "orchestrator").chmod(0o755)
    scripts = place / "my checkout/scripts"
    scripts.mkdir(parents=True)
    (scripts / "run").symlink_to(REPOSITORY / "scripts/run")
    venv = f"ensure_venv() {{ VENV={Path(sys.executable).parents[1]}; }}"
    (scripts / "_venv.sh").write_text(venv)
    return {
        f"{sys.executable} -m orchestrator": os.defpath,
        "orchestrator": f"{place}:{os.defpath}",
        "'../my checkout/scripts/run'": os.defpath,
    }


def shell(product: Product, line: str, path: str) -> str:
    variables = {**product.environment({"PATH": path, "COLUMNS": "300"}), "CMAES_PROGRAM": ""}
    bash = ["/bin/bash", "-c", f"cd {product.folder}; ({line}) 2>&1"]
    return subprocess.run(bash, env=variables, stdout=-1, text=True, check=False).stdout


def test_the_program_is_named_as_it_was_called(product: Product) -> None:
    for called, path in ways_to_call(product.folder.parent).items():
        (see,) = re.findall(r"See: (.*)", shell(product, f"{called} status --no-such-option", path))
        words = [*shlex.split(called), "status"]
        assert shlex.split(see)[: len(words)] == words


def test_a_python_without_the_product_says_so_in_one_line(product: Product) -> None:
    line = f"{sys.executable} -S -m orchestrator doctor || echo $?"
    error, code = shell(product, line, os.defpath).splitlines()
    assert ("scripts/run" in error, code) == (True, "2")


def test_what_a_session_prints_can_be_pasted(product: Product) -> None:
    printed = "".join(product(line, code=None).text for line in SESSION)
    printed += (product.folder / "my file.toml").read_text()
    found = {line for line in COMMAND.findall(printed) if not TO_FILL_IN.search(line)}
    assert len(found) >= 9, found
    for line in sorted(found):
        product(line if READS.match(line) else f"{line} --help")
    product.verify("one")
