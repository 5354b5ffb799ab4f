"""Checkpoints of arrays whose rows are divided among ranks: one file a rank, and an index.

A checkpoint is a folder. Each rank writes its rows to a file with a new name; when all are on the disk, rank 0 puts the
index in its place, in one step. So the folder holds a whole checkpoint at each moment, the last or the one before, and
files that no index names are remains of a job that ended while it wrote. The next `save` removes them.

Any number of ranks loads it. The index has a checksum of each array in each file.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from math import prod
from typing import Any, NoReturn

import numpy as np

from ..core.low_precision import bfloat16, names_bfloat16
from ..errors import CheckpointError, FunctransError, ShardingError
from ..frontend.arguments import path_of
from .communicator import Communicator, bytes_of

__all__ = ("load", "read_notes", "rows", "save")

_INDEX = "index.json"
_FORMAT = "functrans shards 1"
_SUFFIX = ".shard"
_CHECKSUM = 16


def rows_each(n: int, size: int) -> int:
    """How many rows each of `size` ranks has, of `n` rows and padding."""
    return -(-n // size)


def rows(n: int, size: int, rank: int) -> range:
    """The rows of a rank, of `n` rows on `size` ranks: equal numbers, but fewer or none on the last ones.

    Examples
    --------
    >>> from functrans.distributed import shards
    >>> [shards.rows(5, 3, rank) for rank in range(3)]
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    each = rows_each(n, size)
    return range(min(n, rank * each), min(n, (rank + 1) * each))


# --- writing ------------------------------------------------------------------------------------------------


def save(
    path: Any,
    arrays: Mapping[str, np.ndarray],
    whole: Mapping[str, int],
    communicator: Communicator,
    notes: Any = None,
) -> None:
    """Write a checkpoint, which replaces the one in the folder. All ranks call it.

    Parameters
    ----------
    path : str or path-like
        The folder, which all ranks see. It is made if it is not there.
    arrays : mapping from str to ndarray
        What this rank holds: its `rows` of divided arrays, with or without padding after them, and whole arrays that
        are the same on all ranks.
    whole : mapping from str to int
        The number of rows of each array that is divided.
    communicator : Communicator
        The ranks.
    notes : object, optional
        What else to keep, as JSON can: dicts, lists, str, numbers, None. `read_notes` returns it.

    Raises
    ------
    ShardingError
        If an array has fewer rows than belong to this rank.
    CollectiveError
        If the keys, dtypes or shapes differ between ranks.
    CheckpointError
        On all ranks, if one of them cannot write. What was in the folder stays.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from functrans.distributed import run_threads, shards
    >>> folder = tempfile.mkdtemp()
    >>> table = np.arange(10.0).reshape(5, 2)
    >>> def save(mesh):
    ...     mine = shards.rows(5, mesh.size, mesh.rank)
    ...     shards.save(folder, {"table": table[mine]}, {"table": 5}, mesh.communicator("dp"))
    >>> _ = run_threads(3, "dp", save)
    >>> np.array_equal(shards.load(folder)["table"], table)
    True
    """
    folder, c = path_of("shards.save: path", path), communicator
    mine = {key: _own(key, x, whole.get(key), c) for key, x in arrays.items()}
    c.agree("\n".join(_described(key, x, whole.get(key)) for key, x in arrays.items()))
    name = _agreed_name(c)
    written, failure = {}, ""
    try:
        os.makedirs(folder, exist_ok=True)
        written = _write_shard(os.path.join(folder, name), mine, whole, c)
    except OSError as error:
        failure = f"{os.path.join(folder, name)} cannot be written: {error.strerror} (rank {c.rank})"
    reports = [json.loads(text) for text in c.gather_bytes(json.dumps([failure, name, written]).encode())]
    failures = [failure for failure, _, _ in reports if failure]
    if not failures and c.rank == 0:
        try:
            _write_index(folder, _index_of(arrays, whole, reports) | {"notes": notes})
        except OSError as error:
            failures = [f"{os.path.join(folder, _INDEX)} cannot be written: {error.strerror}"]
    failure = c.gather_bytes("\n".join(failures).encode())[0].decode()
    if failure:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(folder, name))
        raise CheckpointError(f"shards.save: {failure}")
    if c.rank == 0:
        _remove_others(folder, {name for _, name, _ in reports})
    c.barrier()


def _own(key: str, x: np.ndarray, n: int | None, c: Communicator) -> np.ndarray:
    """What this rank writes: its rows without padding; of a whole array, rank 0 writes all."""
    x = np.asarray(x)
    if n is None:
        return x
    mine = len(rows(n, c.size, c.rank))
    if x.ndim == 0 or len(x) < mine:
        raise ShardingError(
            f"shards.save: {key!r} of {n} rows has {mine} of them on rank {c.rank} of {c.size}, got shape {x.shape}"
        )
    return x[:mine]


def _described(key: str, x: np.ndarray, n: int | None) -> str:
    """What must be the same on all ranks."""
    shape = list(np.shape(x))
    return f"shards.save: {key} {x.dtype}{shape if n is None else [n, *shape[1:]]}"


def _agreed_name(c: Communicator) -> str:
    """A new name for the file of this rank."""
    number = np.frombuffer(secrets.token_bytes(6), np.uint8).copy()
    c.broadcast(number, 0)
    return f"{number.tobytes().hex()}-{c.rank:05d}-of-{c.size:05d}{_SUFFIX}"


def _write_shard(
    path: str, mine: Mapping[str, np.ndarray], whole: Mapping[str, int], c: Communicator
) -> dict[str, list[Any]]:
    """Write the file of this rank; of each array in it: place, bytes, checksum, first row, number of rows."""
    written = {}
    with open(path, "xb") as file:
        for key, x in mine.items():
            start = rows(whole[key], c.size, c.rank).start if key in whole else 0
            if key in whole or c.rank == 0:
                data = bytes_of(np.ascontiguousarray(x).reshape(x.shape))
                written[key] = [file.tell(), data.nbytes, _checksum(data), start, len(x) if x.ndim else 1]
                file.write(memoryview(data))
        file.flush()
        os.fsync(file.fileno())
    return written


def _checksum(data: Any) -> str:
    return blake2b(data, digest_size=_CHECKSUM).hexdigest()


def _index_of(
    arrays: Mapping[str, np.ndarray], whole: Mapping[str, int], reports: list[Any]
) -> dict[str, Any]:
    described = {}
    for key, x in arrays.items():
        shape = [whole[key], *x.shape[1:]] if key in whole else list(np.shape(x))
        chunks = [[name, *written[key]] for _, name, written in reports if key in written]
        described[key] = {"dtype": str(x.dtype), "shape": shape, "divided": key in whole, "chunks": chunks}
    return {"format": _FORMAT, "ranks": len(reports), "arrays": described}


def _write_index(folder: str, index: dict[str, Any]) -> None:
    text = json.dumps(index)
    unfinished = os.path.join(folder, f"{_INDEX}.tmp")
    with open(unfinished, "w", encoding="utf-8") as file:
        file.write(json.dumps({"checksum": _checksum(text.encode()), "index": text}))
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, os.path.join(folder, _INDEX))


def _remove_others(folder: str, current: set[str]) -> None:
    for name in os.listdir(folder):
        if name.endswith(_SUFFIX) and name not in current:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, name))


# --- reading ------------------------------------------------------------------------------------------------


def load(path: Any, communicator: Communicator | None = None) -> dict[str, np.ndarray]:
    """Read a checkpoint, on any number of ranks.

    Parameters
    ----------
    path : str or path-like
        The folder.
    communicator : Communicator, optional
        The ranks that divide the rows. Without it, arrays are whole.

    Returns
    -------
    dict from str to ndarray
        Divided arrays have the `rows` of this rank, padded with zeros so that all ranks have equally many.

    Raises
    ------
    CheckpointError
        If a file is missing or damaged; it is named.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from functrans.distributed import make_mesh, run_threads, shards
    >>> folder = tempfile.mkdtemp()
    >>> with make_mesh(1, "dp", backend="self") as mesh:
    ...     shards.save(folder, {"w": np.array([1.0, 2.0, 3.0])}, {"w": 3}, mesh.communicator("dp"))
    >>> run_threads(2, "dp", lambda mesh: shards.load(folder, mesh.communicator("dp"))["w"])
    [array([1., 2.]), array([3., 0.])]
    """
    folder = path_of("shards.load: path", path)
    size, rank = (1, 0) if communicator is None else (communicator.size, communicator.rank)
    found = {}
    for key, (dtype, shape, divided, chunks) in _read_index(folder)[0].items():
        if divided:
            mine = rows(shape[0], size, rank)
            x = np.zeros((rows_each(shape[0], size), *shape[1:]), dtype)
            for start, part in _chunks(folder, key, dtype, tuple(shape[1:]), chunks, mine):
                first, last = max(start, mine.start), min(start + len(part), mine.stop)
                x[first - mine.start : last - mine.start] = part[first - start : last - start]
        else:
            ((_, x),) = _chunks(folder, key, dtype, tuple(shape), chunks, None)
        found[key] = x
    return found


def read_notes(path: Any) -> Any:
    """The notes of a checkpoint.

    Raises
    ------
    CheckpointError
        If the index is missing or damaged.

    Examples
    --------
    >>> import tempfile
    >>> from functrans.distributed import make_mesh, shards
    >>> folder = tempfile.mkdtemp()
    >>> mesh = make_mesh((1,), ("dp",), backend="self")
    >>> shards.save(folder, {}, {}, mesh.communicator("dp"), notes={"step": 10})
    >>> shards.read_notes(folder)
    {'step': 10}
    """
    return _read_index(path_of("shards.read_notes: path", path))[1]


def _read_index(folder: str) -> tuple[dict[str, tuple[np.dtype, list[int], bool, list[Any]]], Any]:
    """Of each array: dtype, shape, whether its rows are divided, and where they are; and the notes."""
    path = os.path.join(folder, _INDEX)
    try:
        with open(path, encoding="utf-8") as file:
            outer = json.load(file)
        index = json.loads(outer["index"])
        if _checksum(outer["index"].encode()) != outer["checksum"]:
            _damaged(path, "its checksum is wrong: it was cut off or changed")
        if index["format"] != _FORMAT:
            _damaged(path, f"it says {index['format']!r}, and this version of functrans reads {_FORMAT!r}")
        arrays = {
            key: (_dtype(a["dtype"]), a["shape"], a["divided"], a["chunks"])
            for key, a in index["arrays"].items()
        }
        return arrays, index["notes"]
    except OSError as error:
        raise CheckpointError(
            f"{path} cannot be read: {error.strerror}. It is written last: if there is none, the job that wrote "
            f"ended before it was done"
        ) from None
    except FunctransError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        _damaged(path, f"it is not an index of shards ({type(error).__name__}: {error})")


def _dtype(name: str) -> np.dtype:
    return bfloat16() if names_bfloat16(name) else np.dtype(name)


def _chunks(
    folder: str, key: str, dtype: np.dtype, shape: tuple[int, ...], chunks: list[Any], wanted: range | None
) -> Iterator[tuple[int, np.ndarray]]:
    """The parts of an array that have wanted rows: the number of the first row, and the rows."""
    for name, offset, nbytes, checksum, start, count in chunks:
        if wanted is not None and not (start < wanted.stop and wanted.start < start + count):
            continue
        path = os.path.join(folder, os.path.basename(name))
        try:
            with open(path, "rb") as file:
                file.seek(offset)
                data = file.read(nbytes)
        except OSError as error:
            raise CheckpointError(
                f"{path} cannot be read: {error.strerror}. It has rows of {key!r}"
            ) from None
        full = shape if wanted is None else (count, *shape)
        if len(data) != nbytes or nbytes != prod(full) * dtype.itemsize:
            _damaged(path, f"it has {len(data)} bytes of {key!r} instead of {nbytes}")
        if _checksum(data) != checksum:
            _damaged(path, f"the checksum of {key!r} is wrong: the file was changed")
        yield start, np.frombuffer(data, dtype).reshape(full).copy()


def _damaged(path: str, reason: str) -> NoReturn:
    raise CheckpointError(f"{path} is damaged: {reason}. Load another checkpoint")
