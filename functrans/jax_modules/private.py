"""What libraries use of JAX's private modules (``jax._src``), and what one CPU has nothing of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..api.compiled.jit import jit
from ..api.vmap import vmap
from ..arrays.array import Array
from ..core import finfo as _finfo
from ..core import is_inexact
from ..errors import ArgumentError
from ..extend.primitive import ExtendedPrimitive
from ..frontend.pytree import tree_map
from ..frontend.pytree.nodes import is_node_type
from ..runtime.records import NamedTuple

F = Callable[..., Any]

#: Files whose frames JAX leaves out of tracebacks; functrans leaves out its own.
exclude_paths: list[str] = []


def register_exclusion(path: str) -> None:
    """Note a file whose frames should not be shown."""
    exclude_paths.append(path)


def include_frame(frame: Any) -> bool:
    """Whether a frame is shown."""
    return frame.f_code.co_filename not in exclude_paths


def api_boundary(fun: F, **options: Any) -> F:
    """The function itself: functrans's transformations are boundaries of tracebacks already."""
    return fun


class LiteralArray(Array):
    """JAX's arrays of literals in programs; here literals are numbers."""


def to_complex_dtype(dtype: Any) -> np.dtype:
    """The complex dtype of this precision."""
    return np.result_type(dtype, np.complex64)


def supports_inf(dtype: Any) -> bool:
    """Whether a dtype has infinities."""
    return is_inexact(np.dtype(dtype))


class Format(NamedTuple):
    """The layout and the sharding of an array."""

    layout: Any = None
    sharding: Any = None


class ExtendedDType:
    """The base of dtypes other than numbers."""


class JaxEffect:
    """The base of libraries' own kinds of effects."""


class JaxException(Exception):
    """The base of the kinds of errors of JAX's checkify; functrans has sets of names instead."""


class NodeTypes:
    """The classes that are nodes of pytrees, for ``in``."""

    def __contains__(self, kind: Any) -> bool:
        return is_node_type(kind)


registry = NodeTypes()


def wait_for_tokens() -> None:
    """Nothing is in work when a call has returned."""


#: How far JAX's own tests let numbers differ, by default.
_TOLERANCES = {
    "float64": 1e-15, "complex128": 1e-15, "float32": 1e-6, "complex64": 1e-6, "float16": 1e-3, "bfloat16": 1e-2,
}  # fmt: skip


def check_close(xs: Any, ys: Any, atol: Any = None, rtol: Any = None, err_msg: str = "") -> None:
    """Assert that trees of arrays are close: by tolerances, or dictionaries of such by dtype; JAX's own by default."""

    def tolerance(given: Any, *dtypes: np.dtype) -> float:
        if given is not None and not isinstance(given, dict):
            return float(given)
        known = _TOLERANCES | {np.dtype(key).name: value for key, value in (given or {}).items()}
        return max(known.get(dtype.name, 0.0) for dtype in dtypes)

    def close(x: Any, y: Any) -> None:
        a, b = np.asarray(x), np.asarray(y)
        assert a.shape == b.shape, f"shapes {a.shape} and {b.shape} differ. {err_msg}"
        relative, absolute = (tolerance(given, a.dtype, b.dtype) for given in (rtol, atol))
        np.testing.assert_allclose(a, b, relative, absolute, err_msg=err_msg)

    tree_map(close, xs, ys)


def safe_map(f: F, *args: Any) -> list[Any]:
    """``map`` of sequences of one length."""
    lists = list(map(list, args))
    for other in lists[1:]:
        if len(other) != len(lists[0]):
            raise ArgumentError(f"safe_map: sequences of different lengths: {list(map(len, lists))}")
    return list(map(f, *lists))


def pmap(fun: F, axis_name: Any = None, *, in_axes: Any = 0, out_axes: Any = 0, **options: Any) -> F:
    """`vmap` over an axis of one element: there is one device."""
    return jit(vmap(fun, in_axes, out_axes, axis_name=axis_name, axis_size=1))


def record_event(*args: Any, **kwargs: Any) -> None:
    """Events are not recorded."""


class BCOO:
    """JAX's sparse arrays, of which there are none."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise ArgumentError("jax.experimental.sparse.BCOO: functrans has no sparse arrays: pass a dense one")

    @classmethod
    def fromdense(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise."""
        raise ArgumentError("jax.experimental.sparse.BCOO: functrans has no sparse arrays: pass a dense one")

    from_scipy_sparse = fromdense


finfo = _finfo


class AbstractMesh:
    """The mesh that is set for the whole program: none."""

    empty = True
    axis_names: tuple[str, ...] = ()
    axis_sizes: tuple[int, ...] = ()
    axis_types: tuple[Any, ...] = ()
    shape_tuple: tuple[tuple[str, int], ...] = ()
    manual_axes: tuple[str, ...] = ()
    auto_axes: tuple[str, ...] = ()
    explicit_axes: tuple[str, ...] = ()
    are_all_axes_auto = are_all_axes_explicit = are_all_axes_manual = False
    size = 0

    @property
    def shape(self) -> dict[str, int]:
        """The sizes of its axes: it has none."""
        return {}


_NO_MESH = AbstractMesh()


def get_abstract_mesh() -> AbstractMesh:
    """The mesh that is set for the whole program: an empty one."""
    return _NO_MESH


def reshard(x: Any, sharding: Any) -> Any:
    """The arrays themselves: one device has them."""
    return x


#: Primitives of JAX that functrans's programs do not have: keys for the tables that libraries keep of rules.
call_p = ExtendedPrimitive("core_call", multiple_results=True)
closed_call_p = ExtendedPrimitive("closed_call", multiple_results=True)
custom_jvp_call_p = ExtendedPrimitive("custom_jvp_call", multiple_results=True)
custom_vjp_call_p = ExtendedPrimitive("custom_vjp_call", multiple_results=True)
rsqrt_p = ExtendedPrimitive("rsqrt")
stop_gradient_p = ExtendedPrimitive("stop_gradient")

#: Where a library says which of its classes are arrays. Here ``__array__`` says so.
array_types: dict[type, Any] = {np.ndarray: None}


class AbstractRef:
    """JAX's type of a ref: the type of a `Ref` here is that of its value."""
