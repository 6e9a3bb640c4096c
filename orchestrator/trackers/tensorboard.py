"""Event files that TensorBoard shows, written with its own record writer. No TensorFlow, no torch.

One file a session. Each begins by taking back what an earlier one said of the steps that come
again, as TensorBoard provides for programs that crash.
"""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.types_pb2 import DT_STRING
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar import metadata as layouts
from tensorboard.plugins.text import metadata as texts
from tensorboard.summary.writer.record_writer import RecordWriter

from budgets.plain import plain
from budgets.table import table
from orchestrator.trackers.figures import Figures
from orchestrator.trackers.place import empty
from orchestrator.trackers.sink import Beginning
from orchestrator.trackers.terms import Value

_NAME = "events.out.tfevents."


class TensorBoard:
    """Scalars by their names, the plan and the summary as text."""

    _writer: RecordWriter
    _last: Figures | None = None

    def begin(self, run: Beginning) -> int:
        told = run.told if any(run.directory.glob(f"{_NAME}*")) else 0
        if not told:
            empty(run.directory)
        self._writer = RecordWriter(_new_file(run.directory))
        self._add(Event(wall_time=time.time(), file_version="brain.Event:2"))
        start = SessionLog(status=SessionLog.START)
        self._add(Event(wall_time=time.time(), step=told, session_log=start))
        if not told:
            summary = Summary(value=[_text("plan", run.config), _layout()])
            self._add(Event(wall_time=time.time(), step=0, summary=summary))
        self._writer.flush()
        return told

    def log(self, batch: Sequence[Figures]) -> None:
        for figures in batch:
            values = [
                Summary.Value(tag=name, simple_value=value)
                for name, value in figures.values.items()
            ]
            summary = Summary(value=values)
            self._add(Event(wall_time=figures.at, step=figures.step, summary=summary))
            self._last = figures
        self._writer.flush()

    def end(self, summary: Mapping[str, Value], *, is_over: bool) -> None:  # noqa: ARG002
        if (last := self._last) is not None:
            said = Summary(value=[_text("summary", summary)])
            self._add(Event(wall_time=last.at, step=last.step, summary=said))
        self._writer.flush()
        self._writer.close()

    def _add(self, event: Event) -> None:
        self._writer.write(event.SerializeToString())


def _new_file(directory: Path) -> Any:
    """A file that TensorBoard reads after those there: it goes by their names."""
    numbers = (path.name.removeprefix(_NAME)[:10] for path in directory.glob(f"{_NAME}*"))
    last = max((int(number) for number in numbers if number.isdigit()), default=0)
    name = f"{_NAME}{max(int(time.time()), last + 1):010d}.orchestrator"
    return os.fdopen(os.open(directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _text(tag: str, values: Mapping[str, Value]) -> Summary.Value:
    rows = table(("", ""), ((plain(name), plain(str(value))) for name, value in values.items()))
    metadata = texts.create_summary_metadata(display_name=tag, description="")
    return _tensor(f"{tag}/text_summary", "\n".join(rows).encode(), metadata)


def _layout() -> Summary.Value:
    """What TensorBoard shows on its page of custom scalars."""
    charts = [
        _bands(
            "each generation from mean to best, and the baseline with its noise",
            ("generation/mean", "generation/best", "generation/mean"),
            ("baseline/score", "baseline/noise_low", "baseline/noise_high"),
        ),
        _lines(
            "best so far, and what luck alone would give",
            "generation/best_so_far",
            "baseline/best_by_luck",
        ),
        _lines("step size", "generation/sigma"),
        _lines("evaluations, by how they ended", "status/.*"),
    ]
    layout = layout_pb2.Layout(category=[layout_pb2.Category(title="search", chart=charts)])
    content = layout.SerializeToString()
    return _tensor(layouts.CONFIG_SUMMARY_TAG, content, layouts.create_summary_metadata())


def _bands(title: str, *series: tuple[str, str, str]) -> layout_pb2.Chart:
    """Lines with what is between two others beside them."""
    bands = [
        layout_pb2.MarginChartContent.Series(value=value, lower=lower, upper=upper)
        for value, lower, upper in series
    ]
    return layout_pb2.Chart(title=title, margin=layout_pb2.MarginChartContent(series=bands))


def _lines(title: str, *tags: str) -> layout_pb2.Chart:
    return layout_pb2.Chart(title=title, multiline=layout_pb2.MultilineChartContent(tag=tags))


def _tensor(tag: str, content: bytes, metadata: SummaryMetadata) -> Summary.Value:
    tensor = TensorProto(dtype=DT_STRING, string_val=[content], tensor_shape=TensorShapeProto())
    return Summary.Value(tag=tag, tensor=tensor, metadata=metadata)
