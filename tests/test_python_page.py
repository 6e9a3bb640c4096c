"""docs/python.md and the notebook beside it: every example runs as it stands."""

import re
import shutil
import subprocess
import sys

import psutil
import pytest

from tests.product.books import Books, records
from tests.product.product import REPOSITORY, Product, wait_until

PAGE = (REPOSITORY / "docs/python.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
NOTEBOOK = REPOSITORY / "docs/python.ipynb"


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=["numpy", "sklearn", "torch", "ask and tell"])
def test_every_example_runs_and_its_ledger_verifies(product: Product, example: str) -> None:
    """In tier min, each."""
    example = example.replace('name="numpy"', 'name="numpy", tier="min"')
    process = subprocess.run(
        [sys.executable, product.write("script.py", example)],
        cwd=product.folder, env=product.environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    assert Books.of(product.run_directory()).is_concluded
    product.verify()


@pytest.mark.slow
def test_the_notebook_runs_and_goes_on_after_a_killed_kernel(product: Product) -> None:
    """The kernel is killed in mid-run, and the same cells are run again in another one."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    run = product.folder / "artifacts/cmaes/phase1/svm"
    killed = subprocess.Popen(
        [sys.executable, "-m", "jupyter", "execute", shutil.copy(NOTEBOOK, product.folder)],
        cwd=product.folder, env=product.environment(), start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    product.started.append(killed)
    wait_until(lambda: records(run) > 40)
    (kernel,) = psutil.Process(killed.pid).children()
    assert "ipykernel_launcher" in kernel.cmdline()
    kernel.kill()
    killed.communicate(timeout=60)
    assert not Books.of(run).is_concluded
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    where = {"metadata": {"path": str(product.folder)}}
    nbclient.NotebookClient(notebook, timeout=200, resources=where).execute()
    assert Books.of(run).sessions == 2
    shown = str(notebook.cells)
    assert "<pre>" in shown
    assert "<table border" in shown
    assert "data:image/svg+xml" in shown
    product.verify("svm")
