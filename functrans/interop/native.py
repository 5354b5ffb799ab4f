"""Machine code of jitted functions inside kernels: a C function around the jitted one, called by its address."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np

from ..control.bodies.cache import UserCode
from ..control.call import call_p, effects_of_bodies
from ..core import Aval, Block, BlockEmitter, Buffer, Effect, Jaxpr, Primitive, new_lock
from ..core.values import PyTree
from ..errors import ArgumentValueError, NoRuleError
from ..frontend.pytree import PyTreeDef, tree_flatten, tree_unflatten
from ..lax.control_flow.loops import map as map_rows
from ..lowering.host.host_calls import note_native
from ..primitives.structure.linear import batched_first
from ..runtime.context import Living, LivingValues, cached_property
from ..runtime.private.numba_names import from_dtype, types
from ..runtime.records import dataclass
from .calls.typed_ir import typed_function
from .native_code import EntryCode, compiled_entry
from .numba_parts import Dispatcher


@dataclass(frozen=True, eq=False)
class NativeFunction(UserCode):
    """A jitted function of flat values, as machine code.

    Attributes
    ----------
    dispatcher : numba.core.dispatcher.Dispatcher
    tree : PyTreeDef
        The structure of the arguments.
    static : tuple of (int, object)
        The leaves of the arguments that are not operands, with their positions.
    in_avals, out_avals : tuple of Aval
    out_tree : PyTreeDef
    first : int
        The number of operands between the sizes (see `sizes`) and the function's that it does not read.
    """

    dispatcher: Dispatcher
    tree: PyTreeDef
    static: tuple[tuple[int, Any], ...]
    in_avals: tuple[Aval, ...]
    out_avals: tuple[Aval, ...]
    out_tree: PyTreeDef
    first: int = 0

    def arguments(self, operands: Sequence[Any], of_known: Callable[[Any], Any] = lambda x: x) -> Any:
        """The arguments of the function; `of_known` is applied to those that are no operands."""
        known, rest = {k: of_known(x) for k, x in self.static}, iter(operands)
        count = len(known) + len(operands)
        return tree_unflatten(self.tree, [known[k] if k in known else next(rest) for k in range(count)])

    def run(self, operands: Sequence[Any]) -> list[np.ndarray]:
        """Call the function from Python."""
        pairs = zip(operands[self.first + 1 :], self.in_avals, strict=True)
        values = [np.array(x, a.dtype) if a.shape else np.asarray(x, a.dtype).item() for x, a in pairs]
        leaves, tree = tree_flatten(self.dispatcher(*self.arguments(values)))
        found = [(np.shape(x), np.asarray(x).dtype) for x in leaves]
        if tree != self.out_tree or found != [(a.shape, a.dtype) for a in self.out_avals]:
            raise ArgumentValueError(
                f"numba_call of {self.dispatcher.py_func.__qualname__}: the result is {tree} of {found}, but "
                f"result_shape_dtypes is {self.out_tree} of {list(self.out_avals)}"
            )
        return [np.asarray(x) for x in leaves]

    @cached_property
    def arg_types(self) -> tuple[Any, ...]:
        """Numba's types of the arguments."""
        kinds = self.arguments([_kind(a) for a in self.in_avals])
        return tuple([_joined(a) for a in kinds])

    @cached_property
    def copies(self) -> bool:
        """Whether it may write to its arguments, so that it must get copies."""
        function = typed_function(self.dispatcher, self.arg_types)
        names = function.flow.written(function.blocks)
        return any(f"arg.{n}" in names or n in names for n in function.ir.arg_names)

    @property
    def sizes(self) -> np.ndarray:
        """The extents of all operands and results, which the C function reads."""
        extents = [n for a in (*self.in_avals, *self.out_avals) for n in a.shape]
        return np.array(extents or [0], np.int64)

    @cached_property
    def entry(self) -> NativeEntry:
        """What a kernel calls; functions of equal types and sizes have the same."""
        code = compiled_entry(self)
        with _publishing:
            known = _known.setdefault(self.dispatcher, LivingValues())
            place = (code.address, *self.sizes)
            entry = known.get(place)
            if entry is None:
                entry = known[place] = NativeEntry(self, code)
            return entry


_known: Living[LivingValues[Any, NativeEntry]] = Living()
_publishing = new_lock()


class NativeEntry:
    """A C function ``int64_t f(void **memory)`` that reads its operands from memory and writes its results there."""

    counts = False

    def __init__(self, function: NativeFunction, code: EntryCode) -> None:
        self.function, self._code = function, code
        self.number = code.address
        self.avals: list[Aval] = []
        note_native(self, function.sizes.tolist())

    def run(self, memory: Sequence[np.ndarray]) -> None:
        """The same from a kernel written in Python: operands, then results."""
        count = len(memory) - len(self.function.out_avals)
        for target, x in zip(memory[count:], self.function.run(memory[:count]), strict=True):
            np.copyto(target, x.reshape(target.shape))


def _kind(aval: Aval) -> Any:
    dtype = from_dtype(aval.dtype)
    return types.Array(dtype, len(aval.shape), "C") if aval.shape else dtype


def _joined(x: Any) -> Any:
    """Numba's type of an argument whose dynamic leaves are types."""
    if isinstance(x, tuple):
        return types.BaseTuple.from_types([_joined(v) for v in x], type(x) if hasattr(x, "_fields") else None)
    return x if isinstance(x, types.Type) else numba.typeof(x)


# --- primitives -----------------------------------------------------------------------------------------------


def _abstract(*avals: Aval, function: NativeFunction, jaxpr: Jaxpr | None = None) -> tuple[Aval, ...]:
    return function.out_avals


def _impl(*operands: PyTree, function: NativeFunction, jaxpr: Jaxpr | None = None) -> list[Any]:
    return list(function.run(operands))


def _kernel(
    k: BlockEmitter,
    operands: Sequence[Buffer],
    results: Sequence[Buffer],
    *,
    function: NativeFunction,
    jaxpr: Jaxpr | None = None,
) -> None:
    function.entry.avals = [Aval(tuple(b.shape), b.dtype) for b in (*operands, *results)]
    k.host_call(function.entry, [*operands, *results], len(operands), native=True)


def _batch(
    size: int, args: Sequence[Any], dims: Sequence[int | None], *, function: NativeFunction
) -> tuple[Any, Any]:
    rows = [batched_first(size, x, d) for x, d in zip(args[1:], dims[1:], strict=True)]
    outs = map_rows(lambda row: tuple(native_p.bind(args[0], *row, function=function)), tuple(rows))
    return list(outs), (0,) * len(outs)


def _no_derivative(*args: PyTree, function: NativeFunction) -> Any:
    raise NoRuleError(
        f"numba_call of {function.dispatcher.py_func.__qualname__}: no rule for this derivative. Its rule "
        "(vjp= or jvp=) gives first derivatives in one mode; a rule written with functrans.numpy can itself be "
        "differentiated"
    )


def _raises(*, function: NativeFunction, jaxpr: Jaxpr | None = None) -> Effect:
    return Effect.RAISE


#: A jitted function that is never translated: its derivative is a custom rule.
native_p = Primitive(
    "njit",
    _abstract,
    _impl,
    jvp=_no_derivative,
    batch=_batch,
    kernel=Block(_kernel),
    effects=_raises,
    multiple_results=True,
)


def _as_call(slot: str) -> Callable[..., PyTree]:
    """The rule of `call` for the translation, which does not read the sizes."""

    def rule(*args: PyTree, function: NativeFunction, jaxpr: Jaxpr) -> Any:
        own = [a[1:] if isinstance(a, (list, tuple)) else a for a in args]
        return call_p.rule(slot)(*own, jaxpr=jaxpr)

    return rule


def _effects(*, function: NativeFunction, jaxpr: Jaxpr) -> Effect:
    return effects_of_bodies(jaxpr=jaxpr)


#: The same with its translation `jaxpr`, for derivatives and ``vmap``.
translated_p = Primitive(
    "numba_call",
    _abstract,
    _impl,
    jvp=_as_call("jvp"),
    linearize=_as_call("linearize"),
    jet=_as_call("jet"),
    checked=_as_call("checked"),
    batch=_as_call("batch"),
    kernel=Block(_kernel),
    effects=_effects,
    multiple_results=True,
)
