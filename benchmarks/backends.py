"""The contestants under one interface."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Backend:
    """What a workload needs from a contestant."""

    name: str
    api: ModuleType
    """A namespace with `grad` and `value_and_grad`, and, if the contestant compiles, `jit` and `hessian`."""
    numpy: ModuleType
    special: ModuleType
    linalg: ModuleType | None
    lax: ModuleType | None
    asarray: Callable[[Any], Any]
    """Converts a NumPy array to the contestant's own, which its users hold between calls."""
    wait: Callable[[Any], Any]
    """Waits until a result has been computed (JAX returns earlier)."""
    clear: Callable[[], None]
    """Forgets everything traced and compiled."""

    def bind(self, f: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        """A new function of the arrays alone, `f` with this contestant's namespaces filled in."""
        spaces = {
            "api": self.api,
            "np": self.numpy,
            "special": self.special,
            "linalg": self.linalg,
            "lax": self.lax,
        }
        accepted = {p.name for p in inspect.signature(f).parameters.values() if p.kind is p.KEYWORD_ONLY}
        filled = {name: space for name, space in spaces.items() if name in accepted} | options

        def bound(*arguments: Any) -> Any:
            return f(*arguments, **filled)

        bound.__name__ = bound.__qualname__ = f.__name__
        return bound

    def arrays(self, tree: Any) -> Any:
        """Convert the NumPy arrays in nested tuples, lists and dictionaries to arrays of the contestant."""
        if isinstance(tree, dict):
            return {key: self.arrays(value) for key, value in tree.items()}
        if isinstance(tree, tuple | list):
            return type(tree)(self.arrays(part) for part in tree)
        return self.asarray(tree)


def _same(x: Any) -> Any:
    return x


def _nothing() -> None:
    pass


def _namespaces(package: str, *names: str) -> list[ModuleType]:
    return [importlib.import_module(f"{package}.{name}") for name in names]


@functools.cache
def functrans() -> Backend:
    """functrans: its own immutable arrays."""
    api = importlib.import_module("functrans")
    numpy, special, linalg, lax = _namespaces("functrans", "numpy", "scipy.special", "scipy.linalg", "lax")
    for namespace in (numpy, special, linalg, lax):
        for name in namespace.__all__:
            getattr(namespace, name)  # names load when they are first used: not in what is measured
    return Backend("functrans", api, numpy, special, linalg, lax, numpy.asarray, _same, api.clear_caches)


@functools.cache
def jax() -> Backend:
    """JAX on the CPU in double precision (set by the environment): its own arrays, computed to the end."""
    api = importlib.import_module("jax")
    numpy, special, linalg, lax = _namespaces("jax", "numpy", "scipy.special", "scipy.linalg", "lax")
    return Backend(
        "JAX", api, numpy, special, linalg, lax, numpy.asarray, api.block_until_ready, api.clear_caches
    )


@functools.cache
def autograd() -> Backend:
    """HIPS autograd: NumPy's arrays, no compilation."""
    api = importlib.import_module("autograd")
    numpy, special = _namespaces("autograd", "numpy", "scipy.special")
    return Backend("autograd", api, numpy, special, None, None, np.asarray, _same, _nothing)
