"""Several processes: meshes, collectives, checkpoints."""

from __future__ import annotations

from .base import FunctransError


class ShardingError(FunctransError, ValueError):
    """A mesh or a sharding does not fit: an axis that the mesh does not have, a mesh that is closed.

    >>> from functrans.distributed import make_mesh
    >>> mesh = make_mesh((1,), ("dp",), backend="self")
    >>> mesh.axis_index("tp")
    Traceback (most recent call last):
    ...
    functrans.errors.ShardingError: the mesh has no axis 'tp'. Its axes are 'dp'...

    The message names the axis, the argument, or the key path of the array.
    """


class CollectiveError(FunctransError, ValueError):
    """A collective that cannot be carried out: ranks that call different ones, sizes that do not fit.

    >>> from functrans.distributed import make_mesh
    >>> make_mesh((4,), ("dp",), backend="self")
    Traceback (most recent call last):
    ...
    functrans.errors.CollectiveError: make_mesh: a mesh of shape (4,) has 4 ranks, but there is 1...

    All ranks of an axis must call the same collectives, in the same order, on arrays of the same shape and dtype. Start
    as many ranks as the mesh has: ``python -m functrans.distributed.run -n 4 script.py``. With
    ``config.check_collectives`` the ranks compare what they call before each call, so a mismatch is an error that shows
    both sides, and not a job that waits for ever.
    """


class CheckpointError(FunctransError, ValueError):
    """A checkpoint cannot be read: a file is missing, damaged, or does not belong to it.

    >>> from functrans.distributed import shards
    >>> shards.load("/dev/null")
    Traceback (most recent call last):
    ...
    functrans.errors.CheckpointError: /dev/null/index.json cannot be read: Not a directory...

    The message names the file. A checkpoint is written as one file a rank and then ``index.json``; if that is missing,
    the job ended while it wrote.
    """
