"""Libraries that load on first use, so that ``import functrans`` does not wait for them."""

from __future__ import annotations

from typing import Any

from .module_getattr import lazy_import

jax: Any = lazy_import("jax")
llvm: Any = lazy_import("llvmlite.binding")
llvmlite: Any = lazy_import("llvmlite")
ml_dtypes: Any = lazy_import("ml_dtypes")
numba: Any = lazy_import("numba")
scipy: Any = lazy_import("scipy")
