"""Every change of state in a run, as data. The journal stores these, the console folds them, recovery
replays them.

Rules of this package:
- an event is a small frozen struct; its docstring says when it happens;
- it stands in the file of what it happens to, and in the union at that file's end;
- ``Record`` puts a number and a time on it: ``at`` is lease time in seconds since the run's first start;
- new fields are optional, so that an old recording still opens; fields are never renamed, nor are events: a
  recording tells them by their names;
- frames are half-open ranges of the job; parts are numbers of the grid in ``RunOpened.cuts``.
"""

# ruff: noqa: F403, F405 (every event is to be had by its name from here)
from __future__ import annotations

import msgspec

from farm.events.base import *
from farm.events.claims import *
from farm.events.options import *
from farm.events.parts import *
from farm.events.run import *
from farm.events.workers import *

AnyEvent = RunEvent | WorkerEvent | ClaimEvent | PartEvent


class Record(msgspec.Struct, frozen=True, gc=False):
    """An event with its place in the log: ``seq`` from 0 without gaps, ``at`` in lease seconds."""

    seq: int
    at: float
    event: AnyEvent


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Record)


def encode_record(record: Record) -> bytes:
    """One JSON object, without a line end; the same bytes for the same record."""
    return _encoder.encode(record)


def decode_record(line: bytes) -> Record:
    """Raises msgspec.DecodeError or ValidationError for what is not a record."""
    return _decoder.decode(line)
