"""Machine code of jitted functions inside kernels: a C function around the jitted one, called by its address."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from ..control.body_cache import UserCode
from ..control.call import call_p, effects_of_bodies
from ..core import Aval, Block, BlockEmitter, Buffer, Effect, Jaxpr, Primitive
from ..core.errors import ArgumentValueError, NoRuleError
from ..frontend.pytree import PyTreeDef, tree_flatten, tree_unflatten
from ..lax.loops import map as map_rows
from ..lowering.host.host_calls import note_entry
from ..primitives.structure.linear import batched_first
from .typed_ir import typed_function


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
        The number of operands between the sizes (see `sizes`) and its own that it does not read.
    """

    dispatcher: Any
    tree: PyTreeDef
    static: tuple[tuple[int, Any], ...]
    in_avals: tuple[Aval, ...]
    out_avals: tuple[Aval, ...]
    out_tree: PyTreeDef
    first: int = 0

    def arguments(self, operands: Sequence[Any]) -> Any:
        """The arguments of the function."""
        known, rest = dict(self.static), iter(operands)
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
    def copies(self) -> bool:
        """Whether it may write to its arguments, so that it must get copies."""
        kinds = [_kind(a) for a in self.in_avals]
        args = self.arguments(kinds)
        function = typed_function(self.dispatcher, tuple([_joined(a) for a in args]))
        names = function.flow.written(function.blocks)
        return any(f"arg.{n}" in names or n in names for n in function.ir.arg_names)

    @property
    def sizes(self) -> np.ndarray:
        """The extents of all operands and results, which the C function reads."""
        extents = [n for a in (*self.in_avals, *self.out_avals) for n in a.shape]
        return np.array(extents or [0], np.int64)

    @cached_property
    def entry(self) -> NativeEntry:
        """What a kernel calls."""
        return NativeEntry(self)


class NativeEntry:
    """A C function ``int64_t f(void **memory)`` that reads its operands from memory and writes its results there."""

    counts = False

    def __init__(self, function: NativeFunction) -> None:
        self.function = function
        self._code = _compiled(function)
        self.number = self._code.address
        self.avals: list[Aval] = []
        note_entry(self)

    def run(self, memory: Sequence[np.ndarray]) -> None:
        """The same from a kernel written in Python: operands, then results."""
        count = len(memory) - len(self.function.out_avals)
        for target, x in zip(memory[count:], self.function.run(memory[:count]), strict=True):
            np.copyto(target, x.reshape(target.shape))


def _compiled(f: NativeFunction) -> Any:
    """Compile the C function: views of the operands, a call, copies of the results."""
    names = {"f": f.dispatcher, "carray": numba.carray, "Exception": Exception}
    values: list[Any] = []
    lines = ["def entry(memory):"]
    for k, aval in enumerate([*f.in_avals, *f.out_avals]):
        names[f"t{k}"] = aval.dtype
        place = f"memory[{f.first + 1 + k}]"
        shape = "".join(f"s[{_place(f, k) + axis}], " for axis in range(len(aval.shape))) or "1,"
        lines.append(f"    x{k} = carray({place}, ({shape}), t{k})")
        if k < len(f.in_avals):
            whole = f"x{k}.copy()" if f.copies else f"x{k}"
            values.append(whole if aval.shape else f"x{k}[0]")
    lines.insert(1, "    s = carray(memory[0], (rank,), word)")
    names["rank"] = max(sum(len(a.shape) for a in (*f.in_avals, *f.out_avals)), 1)
    names["word"] = np.dtype(np.int64)
    for k, value in f.static:
        names[f"c{k}"] = value
    lines += ["    try:", f"        y = f({_written(f, values, names)})", *_stored(f)]
    lines += ["    except Exception:", "        return 1", "    return 0"]
    exec("\n".join(lines), names)
    signature = types.int64(types.CPointer(types.voidptr))
    return numba.cfunc(signature)(names["entry"])


def _place(f: NativeFunction, k: int) -> int:
    return sum(len(a.shape) for a in [*f.in_avals, *f.out_avals][:k])


def _written(f: NativeFunction, operands: list[str], names: dict[str, Any]) -> str:
    """The arguments as source text."""
    known = {k: f"c{k}" for k, _ in f.static}
    rest = iter(operands)
    leaves = [known[k] if k in known else next(rest) for k in range(len(known) + len(operands))]
    return ", ".join([_text(a, names) for a in tree_unflatten(f.tree, leaves)])


def _text(tree: Any, names: dict[str, Any]) -> str:
    if not isinstance(tree, tuple):
        return str(tree)
    parts = "".join([f"{_text(t, names)}, " for t in tree])
    if not hasattr(tree, "_fields"):
        return f"({parts})"
    names[type(tree).__name__] = type(tree)
    return f"{type(tree).__name__}({parts})"


def _stored(f: NativeFunction) -> list[str]:
    """The statements that copy the results."""
    first = len(f.in_avals)
    leaves = tree_unflatten(f.out_tree, list(range(len(f.out_avals))))
    lines = []
    for path, k in _paths(leaves, "y"):
        if f.out_avals[k].shape:
            lines += [f"        if {path}.shape != x{first + k}.shape:", "            return 2"]
            lines += [f"        x{first + k}[...] = {path}"]
        else:
            lines += [f"        x{first + k}[0] = {path}"]
    return lines or ["        pass"]


def _paths(tree: Any, text: str) -> list[tuple[str, int]]:
    if isinstance(tree, (tuple, list)):
        return [p for k, part in enumerate(tree) for p in _paths(part, f"{text}[{k}]")]
    return [] if tree is None else [(text, tree)]


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


def _impl(*operands: Any, function: NativeFunction, jaxpr: Jaxpr | None = None) -> list[Any]:
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


def _no_derivative(*args: Any, function: NativeFunction) -> Any:
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


def _as_call(slot: str) -> Callable[..., Any]:
    """The rule of `call` for the translation, which does not read the sizes."""

    def rule(*args: Any, function: NativeFunction, jaxpr: Jaxpr) -> Any:
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
