import io

from rich.console import Console

from objectives.nanochat.program.watch import watch

TRAINED = {"loss": 2.5, "tokens_per_second": 1234.0}


def shown(*, terminal: bool) -> str:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal, width=110, highlight=False)
    with watch(console, 10, 40) as sink:
        sink.log(20, TRAINED)
        sink.log(20, {"val_bpb": 3.25})
    return stream.getvalue()


def test_a_pipe_gets_a_line_for_every_report_and_no_control_characters() -> None:
    first, second = shown(terminal=False).splitlines()
    assert first.startswith("step 20/40  loss 2.5000  1,234 tokens/s  ETA 0:00:0")
    assert second == "step 20  validation 3.25000 bits per byte"


def test_a_terminal_gets_a_bar_below_the_evaluations() -> None:
    text = shown(terminal=True)
    assert "\x1b[" in text
    assert "━" in text
    assert "validation 3.25000" in text
