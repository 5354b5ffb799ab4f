"""Calls of users' Python functions inside a program: ``pure_callback``, ``io_callback``, ``debug_callback``.

Such an equation carries a `FlatCallback`: the function, the structure of its arguments and results, and the mapped axes
over which it is called lane by lane. The primitives differ in how they transform:

================== =========== ========================= ================ ======================
primitive          not needed  differentiated            ``vmap``         order
================== =========== ========================= ================ ======================
``pure_callback``  removed     error                     ``vmap_method``  free
``io_callback``    kept        error                     each lane        kept; error if ordered
``debug_callback`` kept        called with the primals   each lane        kept
================== =========== ========================= ================ ======================
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from contextvars import ContextVar
from functools import partial
from types import MethodType
from typing import Any, NoReturn

import numpy as np

from ...arrays.array import read_only_copy, wrap
from ...core import (
    Aval,
    Effect,
    Eqn,
    Primitive,
    Tracer,
    Zero,
    dtype_kind,
    eval_trace,
    replayed,
    run_with,
    subjaxprs,
    tracing,
    user_source,
)
from ...core.values import Param, PyTree, Tangent, Value
from ...errors import CallbackError, NoRuleError
from ...frontend.pytree import PyTreeDef, tree_flatten, tree_unflatten
from ...frontend.pytree.nodes import keystr
from ...frontend.tree_spec import Mismatch, TreeSpec
from ...primitives.operands import plain
from ...primitives.structure.linear import batched_first, move_axis
from ...runtime.records import dataclass
from ..bodies.cache import UserCode, lasting

SEQUENTIAL = ("sequential", "sequential_unrolled")
VMAP_METHODS = (*SEQUENTIAL, "expand_dims", "broadcast_all", "legacy_vectorized")

_NOTE = "in the callback "
HOOK_NOTE = "in the hook "
#: Python numbers take the declared dtype if NumPy's promotion would allow it.
PYTHON_RANKS: dict[type, str] = {bool: "biufc", int: "iufc", float: "fc", complex: "c"}


class Replay(deque[Any]):
    """The results of earlier calls, while a failed program is evaluated again to find the cause."""


#: Where kernels that may fail record the results of their calls; a `Replay` while a failure is being explained.
made_before: ContextVar[Any] = ContextVar("functrans_made_before", default=None)


@dataclass(frozen=True, eq=False)
class FlatCallback(UserCode):
    """A user's function, with everything needed to call it with flat values.

    Attributes
    ----------
    function : callable
    in_tree : PyTreeDef
        The structure of ``(args, kwargs)``.
    static : tuple of (int, object)
        The leaves of the arguments that are not arrays (strings, flags), with their positions.
    out_tree : PyTreeDef or None
        The structure of the result; None if it is ignored.
    lanes : tuple of (int, tuple of bool)
        Mapped axes, outermost first: the size, and which operands have the axis. The function is called once per lane.
    """

    function: Callable[..., PyTree]
    in_tree: PyTreeDef
    static: tuple[tuple[int, Any], ...]
    out_tree: PyTreeDef | None
    lanes: tuple[tuple[int, tuple[bool, ...]], ...] = ()

    @property
    def name(self) -> str:
        """The function's name, for messages and printing."""
        name = getattr(self.function, "__name__", None)
        return name if isinstance(name, str) else type(self.function).__name__

    def __repr__(self) -> str:
        return self.name

    @property
    def shared(self) -> bool:  # type: ignore[override]
        """Whether it holds nothing that dies before the process. Sharing never skips a call."""
        return not self.static and lasting(self.function)

    # Functions are compared by identity: a user's ``__eq__`` may equate functions that compute differently.

    def _key(self) -> Hashable:
        f = self.function
        function = (f.__func__, id(f.__self__)) if isinstance(f, MethodType) else id(f)
        static = tuple([(place, id(x)) for place, x in self.static])
        return function, self.in_tree, static, self.out_tree, self.lanes

    def __eq__(self, other: object) -> bool:
        return type(other) is FlatCallback and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def mapped(self, size: int, dims: Sequence[int | None]) -> FlatCallback:
        """One call for each of `size` lanes; operands whose `dims` are not None have a leading axis for them."""
        lane = (size, tuple([d is not None for d in dims]))
        return FlatCallback(self.function, self.in_tree, self.static, self.out_tree, (lane, *self.lanes))

    def effect(self, kind: str, values: Sequence[Value], avals: Sequence[Aval]) -> list[np.ndarray]:
        """Like `run`, but a call that a kernel made before it failed is not repeated: its results are known."""
        log = made_before.get()
        return log.popleft() if type(log) is Replay and log else self.run(kind, values, avals)

    def run(self, kind: str, values: Sequence[Any], avals: Sequence[Aval]) -> list[np.ndarray]:
        """Call the function, and check its result.

        Parameters
        ----------
        kind : str
            The name of the primitive, for messages.
        values : sequence
            ndarrays and numbers, in the order of the leaves that are not static.
        avals : sequence of Aval
            The declared types of the results.

        Returns
        -------
        list of ndarray
            Copies of the results.
        """
        arrays = [read_only_copy(np.asarray(x)) for x in values]
        return self._lanes(kind, arrays, avals, self.lanes)

    def _lanes(
        self, kind: str, arrays: Sequence[np.ndarray], avals: Sequence[Aval], lanes: Sequence[Any]
    ) -> list[np.ndarray]:
        if not lanes:
            return self._once(kind, arrays, avals)
        (size, mask), *inner = lanes
        results = [np.empty(a.shape, a.dtype) for a in avals]
        avals = [a.with_shape(a.shape[1:]) for a in avals]
        for i in range(size):
            lane = [x[i, ...] if m else x for x, m in zip(arrays, mask)]
            for out, x in zip(results, self._lanes(kind, lane, avals, inner)):
                out[i] = x
        return results

    def _once(self, kind: str, arrays: Sequence[np.ndarray], avals: Sequence[Aval]) -> list[np.ndarray]:
        operands = iter(arrays)
        static = dict(self.static)
        leaves = [static[i] if i in static else wrap(next(operands)) for i in range(self.in_tree.num_leaves)]
        args, kwargs = tree_unflatten(self.in_tree, leaves)
        try:
            # Evaluate with NumPy, outside any transformation.
            result = run_with(replayed, None, tracing, eval_trace, partial(self.function, *args, **kwargs))
        except Exception as error:
            source = user_source()
            if source is not None:
                error.add_note(f"{_NOTE}'{self.name}' of {kind}, called\n  at {source.describe()}")
            raise
        return [] if self.out_tree is None else self._checked(kind, result, avals)

    # --- results --------------------------------------------------------------------------------------------

    def _checked(self, kind: str, returned: Any, avals: Sequence[Aval]) -> list[np.ndarray]:
        assert self.out_tree is not None
        leaves, tree = tree_flatten(returned)
        if _alike(self.out_tree, tree) or not (leaves or avals):
            tree = self.out_tree
        arrays = []
        if tree == self.out_tree:
            arrays = [self._array(kind, x, a) for x, a in zip(leaves, avals)]
        mismatch = TreeSpec(self.out_tree, avals).mismatch(tree, [Aval(x.shape, x.dtype) for x in arrays])
        if mismatch is not None:
            self._refuse(kind, mismatch, tree)
        return [np.array(x, a.dtype, order="C", subok=False) for x, a in zip(arrays, avals)]

    def _array(self, kind: str, x: Value, aval: Aval) -> Value:
        if type(x) in PYTHON_RANKS and not aval.shape and dtype_kind(aval.dtype) in PYTHON_RANKS[type(x)]:
            return np.array(x, aval.dtype)
        return x if isinstance(x, Tracer) else plain(x, f"{kind}: the result of the callback '{self.name}'")

    def _refuse(self, kind: str, mismatch: Mismatch, tree: PyTreeDef) -> NoReturn:
        assert self.out_tree is not None
        aspect, path, expected, actual, _ = mismatch
        if aspect == "structure":
            raise CallbackError(
                f"{kind}: the callback '{self.name}' returned {_structure(tree)}, but result_shape_dtypes "
                f"declares {_structure(self.out_tree)}"
            )
        where = f" at result{keystr(path)}" if path else ""
        cure = "Return an array of that shape, or change result_shape_dtypes"
        if aspect == "dtype":
            cure = f"Convert it: np.asarray(result, np.{expected.dtype}), or change result_shape_dtypes"
        raise CallbackError(
            f"{kind}: the callback '{self.name}' returned an array of shape {actual.shape} and "
            f"dtype {actual.dtype}{where}, but result_shape_dtypes declares "
            f"shape {expected.shape} and dtype {expected.dtype}. {cure}"
        )


def is_from_callback(error: BaseException) -> bool:
    """Whether a callback raised the error, which must then reach the user unchanged."""
    return any(note.startswith((_NOTE, HOOK_NOTE)) for note in getattr(error, "__notes__", ()))


def _structure(tree: PyTreeDef) -> str:
    return "an array" if str(tree) == "*" else f"the structure {tree}"


def _alike(expected: PyTreeDef, actual: PyTreeDef) -> bool:
    """Equal but for the kinds of sequences: NumPy's functions return named tuples, and lists will do."""
    a, b = expected.node_data(), actual.node_data()
    if a is None or b is None:
        return a is b
    sequences = [issubclass(kind, tuple | list) for kind, _ in (a, b)]
    if not all(sequences) and a != b:
        return False
    children, others = expected.children(), actual.children()
    return len(children) == len(others) and all(map(_alike, children, others))


# --- primitives ---------------------------------------------------------------------------------------------


def _moved(args: Sequence[Value], dims: Sequence[int | None]) -> list[Value]:
    return [x if d is None else move_axis(x, d, 0) for x, d in zip(args, dims)]


def _batched(size: int, avals: Sequence[Aval]) -> tuple[Aval, ...]:
    return tuple([a.with_shape((size, *a.shape)) for a in avals])


def _no_derivative(kind: str, what: str, instead: str) -> Callable[..., NoReturn]:
    def rule(*args: Value, call: FlatCallback, **params: Param) -> NoReturn:
        raise CallbackError(
            f"{kind}: the callback '{call.name}' has no {what}: callbacks do not support it. Please use {instead} "
            "to define the derivative, or functrans.lax.stop_gradient on its arguments if none is needed"
        )

    return rule


def _jvp_of(kind: str, prim: Callable[[], Primitive]) -> Callable[..., Any]:
    refuse = _no_derivative(kind, "derivative (JVP)", "custom_jvp or custom_vjp")

    def jvp(primals: Sequence[Value], tangents: Sequence[Tangent], **params: Param) -> tuple[Any, Any]:
        if any(type(t) is not Zero for t in tangents):
            refuse(**params)
        outs = prim().bind(*primals, **params)
        return outs, [Zero(x) for x in outs]

    return jvp


def _pure_batch(
    size: int,
    args: Sequence[Value],
    dims: Sequence[int | None],
    *,
    call: FlatCallback,
    result_avals: tuple[Aval, ...],
    vmap_method: str | None,
) -> tuple[Any, Any]:
    if vmap_method is None:
        raise NoRuleError(
            f"vmap of pure_callback with the callback '{call.name}': choose vmap_method from "
            f"{', '.join(map(repr, VMAP_METHODS))}. 'sequential' calls it once per lane; with 'expand_dims' and "
            "'broadcast_all' it is called once, with a leading axis on every argument"
        )
    values = _moved(args, dims)
    if vmap_method in SEQUENTIAL:
        call = call.mapped(size, dims)
    elif vmap_method != "legacy_vectorized":
        n = 1 if vmap_method == "expand_dims" else size
        values = [batched_first(n, x, None) if d is None else x for x, d in zip(values, dims)]
    avals = _batched(size, result_avals)
    outs = pure_callback_p.bind(*values, call=call, result_avals=avals, vmap_method=vmap_method)
    return outs, (0,) * len(avals)


def _io_batch(
    size: int,
    args: Sequence[Value],
    dims: Sequence[int | None],
    *,
    call: FlatCallback,
    result_avals: tuple[Aval, ...],
    ordered: bool,
) -> tuple[Any, Any]:
    if ordered:
        raise CallbackError(
            f"vmap of io_callback with the callback '{call.name}' and ordered=True: lanes run in no defined "
            "order. Pass ordered=False, or call it outside vmap with the whole batch"
        )
    avals = _batched(size, result_avals)
    call = call.mapped(size, dims)
    outs = io_callback_p.bind(*_moved(args, dims), call=call, result_avals=avals, ordered=False)
    return outs, (0,) * len(avals)


def _debug_batch(
    size: int, args: Sequence[Value], dims: Sequence[int | None], *, call: FlatCallback, ordered: bool
) -> tuple[Any, Any]:
    debug_callback_p.bind(*_moved(args, dims), call=call.mapped(size, dims), ordered=ordered)
    return [], ()


def _debug_jvp(primals: Sequence[Any], tangents: Sequence[Tangent], **params: Param) -> tuple[Any, Any]:
    debug_callback_p.bind(*primals, **params)
    return [], []


def _show(
    *, call: FlatCallback, result_avals: Any = (), vmap_method: Any = None, ordered: bool = False
) -> str:
    parts = [f"callback={call.name}"]
    if call.lanes:
        parts.append(f"lanes={tuple(size for size, _ in call.lanes)}")
    if vmap_method is not None:
        parts.append(f"vmap_method={vmap_method}")
    return ", ".join(parts + ["ordered=True"] * ordered)


pure_callback_p: Primitive = Primitive(
    "pure_callback",
    lambda *avals, call, result_avals, vmap_method: result_avals,
    lambda *args, call, result_avals, vmap_method: call.run("pure_callback", args, result_avals),
    jvp=_jvp_of("pure_callback", lambda: pure_callback_p),
    transpose=_no_derivative("pure_callback", "transpose", "custom_vjp"),
    batch=_pure_batch,
    multiple_results=True,
    show=_show,
)

io_callback_p: Primitive = Primitive(
    "io_callback",
    lambda *avals, call, result_avals, ordered: result_avals,
    lambda *args, call, result_avals, ordered: call.effect("io_callback", args, result_avals),
    jvp=_jvp_of("io_callback", lambda: io_callback_p),
    transpose=_no_derivative("io_callback", "transpose", "custom_vjp"),
    batch=_io_batch,
    effects=lambda **params: Effect.HOST,
    multiple_results=True,
    show=_show,
)

debug_callback_p: Primitive = Primitive(
    "debug_callback",
    lambda *avals, call, ordered: (),
    lambda *args, call, ordered: call.effect("debug.callback", args, ()),
    jvp=_debug_jvp,
    # Of a linear program only the numbers that it computes are transposed.
    transpose=lambda cts, *args, call, ordered: [None] * len(args),
    batch=_debug_batch,
    effects=lambda **params: Effect.HOST,
    multiple_results=True,
    show=_show,
)

CALLBACKS = frozenset((pure_callback_p, io_callback_p, debug_callback_p))


def is_noticed(eqn: Eqn) -> bool:
    """Whether a user could count how often the equation runs."""
    if not eqn.effects.shareable or eqn.primitive in CALLBACKS:
        return True
    return any(is_noticed(e) for body in subjaxprs(eqn.params) for e in body.eqns)
