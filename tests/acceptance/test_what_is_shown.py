"""What people are shown about a run is the same everywhere, and holds nothing back."""

import html
import json
import re
import urllib.request
from collections.abc import Iterator
from urllib.parse import urljoin

import pytest

from tests.acceptance.books import cut
from tests.acceptance.product import Product, WarmStart, commands_in

INLINE = ("--executor", "inline", "--workers", "2", "--set", "backend.threads=1")
SMALL = ("phase1", "--tier", "min", "--objective", "sphere", *INLINE)
FUNCTION = """
import math, random

def evaluate(knobs, seed, budget):
    luck = random.Random(f"{seed} {knobs['lr']}").gauss(0, 0.001)
    gain = 0.1 * math.log10(knobs["lr"] / 1e-3) + 0.02 * knobs["width"]
    return 1 - gain + (knobs["mid"] - 0.2) ** 2 + luck / budget**0.5
"""
SETTINGS = """
objective = "python:slope:evaluate"
[training]
budget = 4
knobs.lr = { kind = "log10", min = 1e-4, max = 1e-1, baseline = 1e-3 }
knobs.width = { kind = "int", min = 1, max = 4, baseline = 4 }
knobs.mid = { min = -1.0, max = 1.0, baseline = 0.3 }
"""


def served(product: Product, run_id: str) -> tuple[str, str]:
    """The list of runs and the run's page, as `serve` sends them."""
    process = product.start("serve", "--port", "0", "--json")
    assert process.stdout is not None
    document = "".join(iter(process.stdout.readline, "}\n"))
    url, pages = json.loads(f"{document}}}")["url"].rstrip("/"), [""]
    for place in ("^()", rf'href="(/[^"]+)"><bdi>{run_id}</bdi>'):
        (path,) = re.findall(place, pages[-1])
        with urllib.request.urlopen(urljoin(url, path), timeout=60) as answer:  # noqa: S310 - our own
            pages.append(answer.read().decode())
    return pages[1], pages[2]


def page_of(product: Product, run_id: str) -> str:
    return product("report", run_id, "--html", "--out", "-").out


def plain(page: str) -> str:
    """A page's text."""
    return html.unescape(re.sub(r"<[^>]+>", "", page))


def commands_on(page: str) -> list[list[str]]:
    found = re.findall(r'<pre class="command">(.*?)</pre>', page, re.DOTALL)
    return commands_in("\n".join(map(plain, found)))


class Ended(Product):
    """Of a user whose search has ended: its best `lr` is at the upper end of the range."""

    printed = ""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory, warm_start: WarmStart) -> Iterator[Ended]:
    user = Ended(tmp_path_factory.mktemp("user"), warm_start)
    user.write("slope.py", FUNCTION)
    user.write("slope.toml", SETTINGS)
    words = ("slope.toml", "--tier", "target", "--run-id", "slope")
    user.printed = user("phase1", *words, *INLINE).out
    yield user
    user.verify()
    user.end()


def test_a_winner_at_the_end_of_a_range_is_said_on_every_surface(ended: Ended) -> None:
    report, best = ended.json("report", "slope"), ended.json("best", "slope")
    surfaces = {
        "end of the run": ended.printed,
        "report": ended("report", "slope").out,
        "markdown": ended("report", "slope", "--md", "--out", "-").out,
        "page": plain(page_of(ended, "slope")),
        "served page": plain(served(ended, "slope")[1]),
        "report --json": report["answer"]["but"],
        "best": ended("best", "slope").out,
        "best --json": " ".join(best["cautions"]),
    }
    for name, text in surfaces.items():
        said = " ".join(text.split())
        assert "lr = 0.1 (upper end" in said, name
        assert "width = 4 (upper end" in said, name  # where its baseline is too
        assert "widen lr upwards" in said, name
        assert "mid =" not in said, name
    kept = json.loads((ended.run_directory("slope") / "best.json").read_text())
    for document in (kept, best):
        ends = {one["knob"]: one["end"] for one in document["at_range_ends"]}
        assert ends == {"lr": "upper", "width": "upper"}
    assert {knob["name"]: knob["at_end"] for knob in report["knobs"]}["lr"] == "upper"


def test_verdict_cautions_next_step_and_file_are_the_last_lines(ended: Ended) -> None:
    own = ended.json("report", "slope")["answer"]
    last = "\n".join(ended.printed.splitlines()[-15:]).lower()
    for part in (own["title"], own["sentence"], own["but"], own["next"], own["commands"][0]):
        assert part.lower() in last
    assert "next: " in last
    assert str(ended.run_directory("slope").relative_to(ended.folder)) in last


def test_every_command_on_a_page_can_be_pasted(ended: Ended) -> None:
    page = page_of(ended, "slope")
    assert " FILE " not in plain(page)
    for words in commands_on(page):
        is_search = words[0] in {"phase1", "phase2"}
        if "--train" not in words:
            ended(*(["plan", *words[1:]] if is_search else words))  # what it would do


def test_the_page_of_an_interrupted_run_says_how_to_take_it_up(product: Product) -> None:
    product(*SMALL, "--run-id", "run")
    cut(product.run_directory("run"), 20)
    _, page = served(product, "run")
    assert re.search(r"<h1[^>]*>.*Interrupted", page, re.DOTALL)
    assert "In progress" not in page
    (words,) = [words for words in commands_on(page.partition("<nav")[0]) if "phase1" in words]
    product(*words, "--executor", "inline")
    product.verify()


def test_a_verdict_has_one_colour_and_the_rows_of_its_plot_can_be_read(looker: Product) -> None:
    run = "beaten_by_a_control"
    runs, page = served(looker, run)
    (listed,) = re.findall(rf'<tr class="mood-(\w+)(?:(?!</tr>).)*<bdi>{run}<', runs, re.DOTALL)
    moods = re.findall(r'class="(?:live |answer )mood-(\w+)', page)
    assert [listed, *moods] == ["caution"] * 3
    plot = page_of(looker, run).partition('id="plot-gains"')[2].partition("</figure>")[0]
    assert "synapses off at equal seconds" in plot
    assert "\N{HORIZONTAL ELLIPSIS}" not in plot
