"""What functrans uses of llvmlite that llvmlite does not document."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..libraries import llvm


def free_passes(passes: Any) -> None:
    """Free a pass manager.

    llvmlite's own method does nothing: the base class with an empty ``_dispose`` comes first. If the function that it
    should call is not there, that method has its chance, and a kernel costs some kilobytes more.
    """
    free = _free_function()
    if free is None:
        passes.close()
    else:
        free(passes)
        passes.detach()


def frees_passes() -> bool:
    """Whether llvmlite has the function that frees a pass manager."""
    return _free_function() is not None


@functools.cache
def _free_function() -> Callable[[Any], None] | None:
    try:
        return llvm.ffi.lib.LLVMPY_DisposeNewModulePassManger  # llvmlite spells it so
    except AttributeError:
        return None
