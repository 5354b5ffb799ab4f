"""What the processes of a program exchange outside of transformations, under JAX's names.

Every process calls these functions, in the same order, with trees of the same structure, shapes and dtypes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.array import wrap
from ..distributed.communicator import Communicator
from ..distributed.world import everyone, place
from ..errors import ArgumentValueError, CollectiveError
from ..frontend.arguments import flatten_values
from ..frontend.checked import checked
from ..frontend.pytree import PyTree, tree_unflatten
from ..frontend.pytree.nodes import keystr
from ..runtime.module_getattr import module_attributes as _module_attributes

__all__ = ["assert_equal", "broadcast_one_to_all", "process_allgather", "sync_global_devices"]
__getattr__, __dir__ = _module_attributes("functrans.experimental.multihost_utils", globals())


def _all() -> Communicator:
    return everyone().communicator("process")


def _flat(function: str, tree: PyTree) -> tuple[list[np.ndarray], Any]:
    values, treedef = flatten_values(tree, lambda path: f"{function}: the leaf in_tree{keystr(path)}")
    return [np.asarray(x, order="C") for x in values], treedef


@checked
def process_allgather(in_tree: PyTree, tiled: bool = False) -> PyTree:
    """The arrays of all processes, on every process.

    Parameters
    ----------
    in_tree : pytree of arrays
    tiled : bool
        Whether to concatenate along the first axis, instead of stacking along a new one.

    Returns
    -------
    pytree of Array

    Raises
    ------
    ArgumentValueError
        If `tiled`, and an array has no axis.

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans.distributed import run_threads
    >>> from functrans.experimental.multihost_utils import process_allgather
    >>> run_threads((2,), ("i",), lambda mesh: process_allgather(mesh.rank))[0]
    Array([0, 1])
    """
    values, treedef = _flat("process_allgather", in_tree)
    communicator = _all()
    outs = []
    for x in values:
        rows = np.empty((communicator.size, *x.shape), x.dtype)
        communicator.all_gather(x, rows)
        if tiled and not x.ndim:
            raise ArgumentValueError(
                "process_allgather: with tiled=True arrays need an axis, got one of shape ()"
            )
        outs.append(wrap(rows.reshape(-1, *x.shape[1:]) if tiled else rows))
    return tree_unflatten(treedef, outs)


@checked
def broadcast_one_to_all(in_tree: PyTree, is_source: bool | None = None) -> PyTree:
    """The arrays of one process, on every process.

    Parameters
    ----------
    in_tree : pytree of arrays
    is_source : bool, optional
        Whether this process is the one; by default, whether its number is 0.

    Returns
    -------
    pytree of Array

    Raises
    ------
    CollectiveError
        If not exactly one process is the source.

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans.distributed import run_threads
    >>> from functrans.experimental.multihost_utils import broadcast_one_to_all
    >>> run_threads((2,), ("i",), lambda mesh: broadcast_one_to_all(10 + mesh.rank))[1]
    Array(10)
    """
    values, treedef = _flat("broadcast_one_to_all", in_tree)
    communicator = _all()
    own = np.array([place()[0] == 0 if is_source is None else is_source])
    sources = np.empty((communicator.size, 1), bool)
    communicator.all_gather(own, sources)
    (roots,) = sources[:, 0].nonzero()
    if len(roots) != 1:
        raise CollectiveError(f"broadcast_one_to_all: one process must be the source, but {len(roots)} are")
    outs = []
    for x in values:
        buffer = x.copy()
        communicator.broadcast(buffer, int(roots[0]))
        outs.append(wrap(buffer))
    return tree_unflatten(treedef, outs)


@checked
def sync_global_devices(name: str) -> None:
    """Wait until every process has called this function.

    Parameters
    ----------
    name : str
        Of the place, the same on all processes.

    Raises
    ------
    CollectiveError
        If names differ.

    Examples
    --------
    >>> from functrans.experimental.multihost_utils import sync_global_devices
    >>> sync_global_devices("after loading")
    """
    communicator = _all()
    communicator.agree(f"sync_global_devices({name!r})")
    communicator.barrier()


@checked
def assert_equal(in_tree: PyTree, fail_message: str = "") -> None:
    """Raise unless all processes have the same arrays.

    Raises
    ------
    CollectiveError
        On every process.

    Examples
    --------
    >>> from functrans.experimental.multihost_utils import assert_equal
    >>> assert_equal({"batch": 32})
    """
    values, treedef = _flat("assert_equal", in_tree)
    digest = "\n".join([str(treedef), *[f"{x.dtype}{list(x.shape)} {x.tolist()}" for x in values]])
    try:
        _all().agree(digest)
    except CollectiveError as error:
        raise CollectiveError(
            f"{fail_message or 'assert_equal: processes have different values'}\n{error}"
        ) from None
