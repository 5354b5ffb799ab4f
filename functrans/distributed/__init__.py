"""Several processes: meshes of ranks, what they exchange, and work that is divided among them.

`make_mesh` arranges the processes that ``mpiexec`` started; `run_threads` has virtual ranks in one process, for tests.
"""

from __future__ import annotations

from ..runtime.module_getattr import module_attributes as _module_attributes
from ..runtime.module_getattr import on_demand as _on_demand
from .communicator import Communicator
from .fully_shard import FullySharded, MixedPrecisionPolicy, fully_shard
from .mapping import map
from .mesh import Mesh, make_mesh, run_threads
from .shard_map import shard_map
from .specs import P, PartitionSpec
from .states import FSDPState
from .worker import Request

with _on_demand(globals()) as _later:
    from . import shards  # noqa: F401

__all__ = [
    "Communicator", "FSDPState", "FullySharded", "Mesh", "MixedPrecisionPolicy", "P", "PartitionSpec", "Request",
    "fully_shard", "make_mesh", "map", "run_threads", "shard_map",
]  # fmt: skip

__getattr__, __dir__ = _module_attributes("functrans.distributed", globals(), later=_later)
