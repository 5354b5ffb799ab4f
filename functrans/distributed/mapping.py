"""`map`: independent work, divided among the ranks of a mesh."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Iterable
from typing import Any

from ..api.progress import default_bar
from ..arrays.arguments import shown
from ..core import ArgumentError
from ..errors import CollectiveError
from ..frontend.arguments import check_function, name_of
from ..runtime.records import NamedTuple
from .communicator import Communicator
from .mesh import Mesh


class ItemError(NamedTuple):
    """What a rank reports of an item that failed: the pickled exception, and the same in words."""

    item: int
    pickled: bytes
    text: str
    note: str
    trace: str


def map(
    f: Callable[[Any], Any], items: Iterable[Any], mesh: Mesh, *, desc: str | None = None, bar: Any = None
) -> list[Any]:
    """Call a function on each item, on all ranks of a mesh side by side. All ranks call it with the same items.

    Rank r computes the items r, r + size, r + 2 size, and so on. What `f` returns is pickled.

    Parameters
    ----------
    f : callable
        Of one item. It must not call collectives of this mesh.
    items : iterable
        Of the same length on each rank.
    mesh : Mesh
    desc : str, optional
        The text before the progress bar; by default the name of `f`.
    bar : object, optional
        The progress bar of rank 0, called as ``bar(total=number of items, desc=desc)``; the result has a method
        ``update(n)``. By default tqdm's, if tqdm is installed, or a line on ``sys.stderr``; False for none. It counts
        the items of rank 0, and as many for each other rank.

    Returns
    -------
    list
        The results in the order of the items, on every rank. They do not depend on the number of ranks, if `f` depends
        on nothing but its item: let items contain seeds or keys.

    Raises
    ------
    CollectiveError
        If ranks have different numbers of items.
    Exception
        On every rank, that of the first of the items that fail. Its notes name the item, and on the other ranks
        show its traceback. Items after it are not begun once it has failed.

    Examples
    --------
    Bootstrap: fits to a hundred samples, with replacement, of the data.

    >>> import numpy as np
    >>> from functrans import distributed
    >>> data = np.arange(10.0)
    >>> def fit(seed):
    ...     return np.random.default_rng(seed).choice(data, 10).mean()
    >>> with distributed.make_mesh((1,), ("dp",), backend="self") as mesh:
    ...     means = distributed.map(fit, range(100), mesh, bar=False)
    >>> len(means), bool(abs(np.mean(means) - 4.5) < 0.3)
    (100, True)
    """
    check_function("map", f)
    if not isinstance(mesh, Mesh):
        raise ArgumentError(f"map: mesh must be a Mesh, got {shown(mesh)}. make_mesh makes one")
    if not isinstance(items, Iterable):
        raise ArgumentError(f"map: items must be iterable, got {shown(items)}")
    items = list(items)
    c = mesh.communicator(mesh.names)
    c.agree(f"map: {len(items)} items")
    mine, error = _computed(f, items, c, _Bar(bar, len(items), desc or name_of(f)) if c.rank == 0 else None)
    failed, shares = _exchanged(c, mine, error)
    if failed:
        _raise_first(failed, c.rank, error)
    results: list[Any] = [None] * len(items)
    for rank, share in enumerate(shares):
        results[rank :: c.size] = share
    return results


class _Bar:
    """A bar that is made before the first item, and closed after the last."""

    def __init__(self, make: Any, total: int, desc: str):
        self._left = total
        self._bar = None if make is False else (make or default_bar())(total=total, desc=desc)

    def update(self, n: int) -> None:
        n = min(n, self._left)
        self._left -= n
        if self._bar is not None:
            self._bar.update(n)

    def close(self) -> None:
        if self._bar is not None and hasattr(self._bar, "close"):
            self._bar.close()


def _computed(
    f: Callable[[Any], Any], items: list[Any], c: Communicator, bar: _Bar | None
) -> tuple[list[Any], tuple[int, Exception] | None]:
    """The results of this rank, and the index and exception of the item that failed."""
    results: list[Any] = []
    try:
        for index in range(c.rank, len(items), c.size):
            if index > c.interrupted():
                break
            try:
                results.append(f(items[index]))
            except Exception as error:
                error.add_note(f"map: item {index}, {shown(items[index])}, on rank {c.rank} of {c.size}")
                c.interrupt(index)
                return [], (index, error)
            if bar is not None:
                bar.update(c.size)
    finally:
        if bar is not None:
            bar.close()
    return results, None


def _exchanged(
    c: Communicator, mine: list[Any], error: tuple[int, Exception] | None
) -> tuple[dict[int, ItemError], list[list[Any]]]:
    """The failures by rank, and the results of all ranks."""
    interrupts = error is not None
    try:
        sent = pickle.dumps((interrupts, None if error is None else _report(*error), mine))
    except Exception as cause:
        text = f"map: rank {c.rank} cannot pickle its results: {type(cause).__name__}: {cause}"
        sent = pickle.dumps((interrupts, _report(c.rank, CollectiveError(text)), []))
    received = [pickle.loads(text) for text in c.gather_bytes(sent)]
    failed = {rank: report for rank, (_, report, _) in enumerate(received) if report is not None}
    if failed:
        c.resume([rank for rank, (interrupts, _, _) in enumerate(received) if interrupts])
    return failed, [share for _, _, share in received]


def _report(index: int, error: Exception) -> ItemError:
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)
    except Exception:  # exceptions whose arguments are not those of their class, or of a class in a function
        pickled = b""
    trace = "".join(traceback.format_exception(error))
    note = error.__notes__[-1] if hasattr(error, "__notes__") else ""
    return ItemError(index, pickled, f"{type(error).__name__}: {error}", note, trace)


def _raise_first(failed: dict[int, ItemError], rank: int, mine: tuple[int, Exception] | None) -> None:
    at = min(failed, key=lambda r: failed[r].item)
    report = failed[at]
    if at == rank and mine is not None:
        raise mine[1]
    error = pickle.loads(report.pickled) if report.pickled else CollectiveError(report.text)
    if report.note not in getattr(error, "__notes__", []):
        error.add_note(report.note)
    error.add_note(f"The traceback of rank {at}:\n{report.trace}")
    raise error
