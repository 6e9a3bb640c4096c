"""What people are shown of a run: in a browser, on every surface alike, and nothing held back."""

import json
import re
import signal
from collections.abc import Callable

import psutil
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.product.books import LEDGER, Books, cut, records, sealed
from tests.product.pages import ask, commands_on, opened, plain, serve
from tests.product.product import Done, Product, wait_until

SCRIPT = "<script>window.owned = 1</script>"
HOSTILE = f"'\">{SCRIPT}<img onerror='a()'>\u202e\u2066\x1b[31m\x07\x9b|`"
NAMES = r'"(?:[^"\\]|\\.)*(?:statuses|python:rude|MemoryError)(?:[^"\\]|\\.)*"'
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
SMALL = "phase1 --tier min --objective sphere --executor inline --assume-eval-seconds 1"
SLOPE = """
import math, random

def evaluate(knobs, seed, budget):
    noise = random.Random(f"{seed} {knobs['lr']}").gauss(0, 0.001)
    gain = 0.1 * math.log10(knobs["lr"] / 1e-3) + 0.02 * knobs["width"]
    return 1 - gain + (knobs["mid"] - 0.2) ** 2 + noise / budget**0.5
"""
SETTINGS = """
objective = "python:slope:evaluate"
[training]
budget = 4
knobs.lr = { kind = "log10", min = 1e-4, max = 1e-1, baseline = 1e-3 }
knobs.width = { kind = "int", min = 1, max = 4, baseline = 4 }
knobs.mid = { min = -1.0, max = 1.0, baseline = 0.3 }
"""


def assert_answered(page: Page) -> None:
    """The four questions of a reader have an answer on the first screen."""
    for word in ("Found", "How sure", "Cost", "Next"):
        answer = page.get_by_text(word, exact=True).first.locator("..")
        command = answer.locator("pre")
        expect(command.first if command.count() else answer).to_be_in_viewport(ratio=1)
        assert len(answer.inner_text()) > len(word) + 10


@pytest.mark.browser
@pytest.mark.parametrize("run", ["go_fades", "no_go_noise", "statuses", "campaign", "space_check"])
def test_a_report_answers_four_questions_on_its_first_screen_and_asks_nobody(
    looker: Product, page_of: Callable[[str], str], browser: Browser, run: str
) -> None:
    file = looker.write("run.html", page_of(run))
    assert not re.search(r"hours\b\W*[\d.]+ (s|min)\b", plain(page_of(run)))  # a unit is said once
    with opened(browser, file.as_uri()) as page:
        assert_answered(page)
        assert page.locator("script").count() == 0
    file.unlink()


@pytest.mark.browser
def test_a_run_that_goes_on_is_followed_to_its_end(product: Product, browser: Browser) -> None:
    running = product.start(f"{SMALL} --set seconds=0.1 --workers 1 --run-id live")
    wait_until(lambda: records(product.folder / "artifacts/cmaes/phase1/live") > 3)
    running.send_signal(signal.SIGSTOP)
    with opened(browser, serve(product)[1]) as page:
        expect(page.locator(".standing").first).to_have_text("running")
        running.send_signal(signal.SIGCONT)
        running.communicate()
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # it asks at once
        expect(page.locator(".standing").first).to_have_text("finished")
        assert_answered(page)
    product.verify("live")


def test_an_overdue_evaluation_is_not_on_track(product: Product) -> None:
    late = SMALL.replace("seconds 1", "seconds 0.1")
    product.start(f"{late} --executor local --workers 1 --set seconds=60 --run-id late")
    wait_until(lambda: "overdue" in product("status late", code=None).out, every=0.3)
    assert "on track" not in product("status late").out.lower()
    assert product.json("status late")["pace"]["on_track"] is not True


@pytest.mark.browser
def test_text_of_others_is_shown_as_text(product: Product, browser: Browser) -> None:
    ledger = product.stored("statuses") / LEDGER
    text = json.dumps(Books.of(ledger.parent).lines)
    named = re.sub(NAMES, lambda _: json.dumps(HOSTILE), text)
    ledger.write_bytes(sealed(json.loads(named)))
    knobs = json.dumps({HOSTILE: {"min": 0, "max": 1, "baseline": 0.5}})
    texts = [product("plan", "--objective=python:a:f", f"--set=knobs={knobs}", code=2)]
    commands = ["status", "best", "verify", "report", "report --html --out run.html"]
    texts += [product(command, "statuses", code=None) for command in commands]
    texts.append(product("report statuses --out -"))
    assert [done for done in texts if done.code == 1 or STEERING.search(done.text)] == []
    outside = re.sub(r"```.*?```", "", texts[-1].out, flags=re.DOTALL)  # code is shown as it is
    assert "<script" not in outside.replace("\\<", "")
    site, run, _ = serve(product)
    for url in (product.folder.joinpath("run.html").as_uri(), site, run):
        with opened(browser, url) as page:
            expect(page.locator("body")).to_contain_text(SCRIPT)


def test_a_server_is_for_its_own_machine_and_changes_nothing(looker: Product) -> None:
    """A verdict has one colour wherever it stands."""
    files = {p: p.read_bytes() for p in looker.folder.rglob("*") if p.is_file()}
    name = "beaten_by_a_control"
    site, run, pid = serve(looker, name)
    listening = psutil.Process(pid).net_connections(kind="inet")
    assert {connection.laddr.ip for connection in listening} == {"127.0.0.1"}
    (code, page), runs = ask(run), ask(site)[1]
    assert code == 200
    paths = ("../ledger.jsonl", "go/ledger.jsonl", "/evil.example")
    refused = [ask(run, Host="evil.example"), *(ask(site + path) for path in paths)]
    refused += [ask(run, method) for method in ("POST", "PUT", "DELETE")]
    assert all(status >= 400 for status, _ in refused)
    assert {p: p.read_bytes() for p in looker.folder.rglob("*") if p.is_file()} == files

    (listed,) = re.findall(rf'<tr class="mood-(\w+)(?:(?!</tr>).)*<bdi>{name}<', runs, re.DOTALL)
    moods = re.findall(r'class="(?:live |answer )mood-(\w+)', page)
    assert [listed, *moods] == ["caution"] * 3


@pytest.fixture(scope="module")
def ended(shared: Product) -> tuple[Product, Done]:
    """A user whose search has ended, its best `lr` at the upper end of the range."""
    shared.write("slope.py", SLOPE)
    shared.write("slope.toml", SETTINGS)
    words = "phase1 slope.toml --tier target --run-id slope --executor inline --workers 2"
    return shared, shared(f"{words} --set backend.threads=1")


def test_a_winner_at_the_end_of_a_range_is_said_on_every_surface(
    ended: tuple[Product, Done],
) -> None:
    """And every command on its page can be pasted."""
    user, printed = ended
    report, best = user.json("report slope"), user.json("best slope")
    page = user("report slope --html --out -").out
    surfaces = {
        "end of the run": printed.out,
        "report": user("report slope").out,
        "markdown": user("report slope --out -").out,
        "page": plain(page),
        "report --json": report["answer"]["but"],
        "best": user("best slope").out,
        "best --json": " ".join(best["cautions"]),
    }
    for name, text in surfaces.items():
        said = " ".join(text.split())
        assert "lr = 0.1 (upper end" in said, name
        assert "width = 4 (upper end" in said, name  # where its baseline is too
        assert "widen lr upwards" in said, name
        assert "mid =" not in said, name
    kept = json.loads((user.run_directory("slope") / "best.json").read_text())
    for document in (kept, best):
        ends = {one["knob"]: one["end"] for one in document["at_range_ends"]}
        assert ends == {"lr": "upper", "width": "upper"}
    assert {knob["name"]: knob["at_end"] for knob in report["knobs"]}["lr"] == "upper"

    assert " FILE " not in plain(page)
    for command in commands_on(page):
        is_search = command.startswith(("phase1 ", "phase2 "))
        user(f"plan {command.partition(' ')[2]}" if is_search else command)
    user.verify()


def test_verdict_cautions_next_step_and_file_are_the_last_lines(
    ended: tuple[Product, Done],
) -> None:
    user, printed = ended
    own = user.json("report slope")["answer"]
    last = "\n".join(printed.out.splitlines()[-15:]).lower()
    for part in (own["title"], own["sentence"], own["but"], own["next"], own["commands"][0]):
        assert part.lower() in last
    assert "next: " in last
    assert str(user.run_directory("slope").relative_to(user.folder)) in last


def test_the_page_of_an_interrupted_run_says_how_to_take_it_up(product: Product) -> None:
    product(f"{SMALL} --run-id run")
    cut(product.run_directory("run"), 20)
    page = ask(serve(product)[1])[1]
    assert re.search(r"<h1[^>]*>.*Interrupted", page, re.DOTALL)
    assert "In progress" not in page
    (command,) = [one for one in commands_on(page.partition("<nav")[0]) if "phase1" in one]
    product(f"{command} --executor inline")
    product.verify()
