"""What a W&B file of an offline run says, as JSON: run in a process of its own.

The file is a LevelDB log of protobuf records: blocks of 32 KiB, in them pieces with a header of a
checksum, a length and whether more of the record follows.
"""

import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK, HEADER, START = 1 << 15, 7, 7
LAST = (1, 4)  # whole, or the last piece


def records(data: bytes) -> Iterator[bytes]:
    at, record = START, b""
    while at + HEADER <= len(data):
        if BLOCK - at % BLOCK < HEADER:
            at += BLOCK - at % BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        record += data[at + HEADER : at + HEADER + length]
        at += HEADER + length
        if kind in LAST:
            yield record
            record = b""


def main() -> None:
    from wandb.proto import wandb_internal_pb2

    history: list[dict[str, Any]] = []
    config: dict[str, Any] = {}
    summary: dict[str, Any] = {}
    said: dict[str, Any] = {"history": history, "config": config, "summary": summary}
    for data in records(Path(sys.argv[1]).read_bytes()):
        record = wandb_internal_pb2.Record.FromString(data)  # type: ignore[attr-defined]
        match record.WhichOneof("record_type"):
            case "history":
                history.append(values(record.history.item))
            case "run":
                own = record.run
                said["run"] = {
                    "id": own.run_id,
                    "name": own.display_name,
                    "project": own.project,
                    "tags": list(own.tags),
                }
                config |= values(own.config.update)
            case "config":
                config |= values(record.config.update)
            case "summary":
                summary |= values(record.summary.update)
            case "exit":
                said["exit"] = record.exit.exit_code
    sys.stdout.write(json.dumps(said))


def values(items: Any) -> dict[str, Any]:
    return {"/".join(i.nested_key) or i.key: json.loads(i.value_json) for i in items}


if __name__ == "__main__":
    main()
