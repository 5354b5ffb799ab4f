"""A profile as a trace in the format of Chrome, which Perfetto shows: one track for each thread."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from ..core import ArgumentValueError, Source
from ..frontend.arguments import path_of
from .lines import KINDS, CountedKernel
from .recording import Recording


def write_trace(path: str | PathLike[str], parts: list[Recording]) -> None:
    """Write the file; see `Profile.save`."""
    target = Path(path_of("profile.save: path", path))
    if not target.name.endswith((".json", ".json.gz")):
        raise ArgumentValueError(
            f"profile.save: the name must end with .json or .json.gz, got {target.name!r}"
        )
    origin = parts[0].start
    events = [event for part in parts for event in _events(part, origin)]
    names = _thread_names(parts, events)
    text = json.dumps({"traceEvents": [*names, *events], "displayTimeUnit": "ns"})
    if target.suffix == ".gz":
        target.write_bytes(gzip.compress(text.encode()))
    else:
        target.write_text(text)


def _thread_names(parts: list[Recording], events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events that name the tracks; threads that never ran Python are the pool's."""
    known = {x.thread.ident: x.thread.name for part in parts for x in part.threads}
    idents = dict.fromkeys([*known, *(e["tid"] for e in events)])
    pool = [ident for ident in idents if ident not in known]
    known.update({ident: f"pool {n}" for n, ident in enumerate(pool, 1)})
    return [
        {"ph": "M", "pid": os.getpid(), "tid": ident, "name": "thread_name", "args": {"name": name}}
        for ident, name in known.items()
    ]


def _events(part: Recording, origin: int) -> Iterator[dict[str, Any]]:
    for thread, events in zip(part.threads, part.events):
        for name, source, start, end in events:
            yield _event(thread.thread.ident, KINDS.get(name, name), start - origin, end - start, source)

    def nanoseconds(ticks: int) -> float:
        return part.start - origin + (ticks - part.first_tick) / part.rate

    for kernel in part.kernels:
        nests = _nests(kernel)
        for ident, first, last in kernel.events.tolist():
            at, whole = nanoseconds(first), nanoseconds(last) - nanoseconds(first)
            yield _event(ident, kernel.name, at, whole)
            for name, share, source in nests:
                length = share * whole
                if length > 0.0:
                    yield _event(ident, name, at, length, source)
                at += length
        for ident, first, last in kernel.chunks.tolist():
            at = nanoseconds(first)
            yield _event(ident, f"chunk of {kernel.name}", at, nanoseconds(last) - at)


def _nests(kernel: CountedKernel) -> list[tuple[str, float, Source | None]]:
    """The loop nests of a kernel with their share of its time, and the line that most of it belongs to."""
    whole = max(int(kernel.sites[:, 0].sum()), 1)
    nests = []
    for site, (ticks, _) in zip(kernel.parts, kernel.sites.tolist()):
        shares = site.own if site.inner else site.shares
        longest = max(shares, key=lambda s: s.cost, default=None)
        nests.append((site.name or "nest", ticks / whole, longest and longest.source))
    return nests


def _event(
    ident: int | None, name: str, start: float, length: float, source: Source | None = None
) -> dict[str, Any]:
    args = {} if source is None else {"line": str(source)}
    if getattr(source, "backward", False):
        args["direction"] = "backward"
    return {
        "ph": "X",
        "pid": os.getpid(),
        "tid": ident,
        "name": name,
        "ts": start / 1000,
        "dur": length / 1000,
        "args": args,
    }
