"""What functions captured, as operands.

A rule runs later than it was written, and in other traces: a ``backward`` that reads a traced `w` from the function
around it would meet a tracer whose trace is over. So tracers are looked for in closures beforehand, and passed as
leading operands; while a rule runs, a `StandInTrace` puts the operands in their place. `closure_convert` does so for
functions that users pass to their rules.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from .. import errors
from ..core.aval import PYTHON_NUMBERS, Aval, aval_of
from ..core.evaluation import evaluate
from ..core.ir import Jaxpr
from ..core.primitive import Primitive
from ..core.trace import Trace, Tracer, concrete, current_trace
from ..core.values import DTypeLike, Params, Tangent, Value
from ..frontend.arguments import (
    Flat,
    argument_name,
    check_function,
    flatten_values,
    given,
    name_of,
    struct_aval,
)
from ..frontend.checked import checked
from ..frontend.pytree import PyTree, PyTreeDef, tree_flatten, tree_unflatten
from ..frontend.pytree.nodes import KeyPath, keystr
from ..frontend.tree_spec import TreeSpec, same_kind
from ..passes.toolkit import lift_tracers
from ..primitives.elementwise.arithmetic import convert
from ..runtime.libraries import package_of
from ..runtime.records import NamedTuple, dataclass
from ..transforms.stage import stage
from ..transforms.substituted import Capture, SubstitutedTrace

_ATOMS = frozenset((int, float, complex, bool, str, bytes, type(None)))
_DEPTH = 10
_PACKAGE = __name__.partition(".")[0]


class Apart(NamedTuple):
    """An argument that is not an operand: in ``nondiff_argnums``, or an object passed to a `Function`."""

    name: str
    value: Any


class Sealed:
    """Base class of what names the functions in which captured values are looked for; nothing else in it is."""

    __slots__ = ()

    @property
    def functions(self) -> tuple[Any, ...]:
        """The functions; none where it passes what they captured itself."""
        return ()


class StandInTracer(Tracer):
    """A Python number, which a user's rule receives as an array of weak dtype."""

    __slots__ = ("value",)
    differentiated = False
    _trace: StandInTrace

    def __init__(self, trace: StandInTrace, value: Any):
        self._trace = trace
        self.value = value

    @property
    def aval(self) -> Aval:  # type: ignore[override]
        return aval_of(self.value)

    def concrete(self) -> Any:
        return concrete(self.value)

    def describe(self) -> str:
        return "a custom rule"

    def __array__(self, dtype: DTypeLike = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.value, dtype)


class StandInTrace(SubstitutedTrace):
    """Passes everything on, with values instead of numbers' stand-ins and of captured tracers.

    Parameters
    ----------
    parent : Trace
    captures : sequence of Capture
    values : sequence
        What stands for each of them now.
    name : str
        Of the rule, for messages.
    """

    __slots__ = ("name",)

    def __init__(self, parent: Trace, captures: Sequence[Capture], values: Sequence[Value], name: str):
        super().__init__(parent, captures, values)
        self.name = name

    def process(self, prim: Primitive, args: tuple[PyTree, ...], params: Params) -> PyTree:
        if self.captured and "rule" in params:
            args, params = self._handed_on(args, params)
        values = tuple([self.lower(a) if isinstance(a, Tracer) else a for a in args])
        out = self.parent.process(prim, values, params)
        if prim.multiple_results:
            return [self.lift(x) for x in out]
        return self.lift(out)

    def _handed_on(self, args: Sequence[Any], params: Params) -> tuple[Any, dict[str, Any]]:
        """The operands of a rule that is applied within this one; what it captured is refused only if it is read."""
        rule = params["rule"]
        first = len(args) - len(rule.own(args))
        operands, captures = list(args), list(rule.captures)
        for i, c in enumerate(captures):
            own, value = self.captured.get(id(args[first + i]), (c, None))
            if own is not c and own.differentiated is not None:
                operands[first + i] = value
                captures[i] = c._replace(differentiated=own.differentiated)
        return operands, {**params, "rule": rule.capturing(captures)}

    def knows(self, tracer: Tracer) -> bool:
        return tracer._trace is self or id(tracer) in self.captured

    def lift(self, x: Any) -> Any:
        """A stand-in for a Python number; any other value as it is."""
        return StandInTracer(self, x) if type(x) in PYTHON_NUMBERS else x

    def lower(self, x: Any) -> Tangent | None:
        """The value that a stand-in or a captured tracer stands for; any other value as it is."""
        if type(x) is StandInTracer and x._trace is self:
            return x.value
        value = super().lower(x) if self.captured else x
        capture = self.captured[id(x)][0] if value is not x else None
        if capture is None or capture.differentiated is None:
            return value
        why = "is captured by a function with a custom rule; pass it as an argument"
        if capture.apart:
            why = "stands in nondiff_argnums; pass it as an argument that does not"
        raise errors.CapturedTracerError(
            f"{self.name}: '{capture.name}' is being differentiated (by {capture.differentiated}) but {why}, so that "
            "the rule can give its derivative"
        )


# --- finding -------------------------------------------------------------------------------------------------


def captured_tracers(functions: Iterable[Any], static: Iterable[Any]) -> list[Capture]:
    """The tracers of traces under way that functions hold in their closures, and static arguments in themselves."""
    places: list[tuple[str, Any]] = [("a function", f) for f in functions if may_capture(f)]
    for x in static:
        if type(x) is Apart:
            places.append(x)
        elif type(x) not in _ATOMS:
            places.append(("a static argument", x))
    if not places:
        return []
    captures: dict[int, Capture] = {}
    seen: set[int] = set()
    for place, x in places:
        for name, tracer in _within(x, place, seen, _DEPTH):
            if id(tracer) not in captures and _live(tracer):
                captures[id(tracer)] = Capture(name, tracer, apart=tracer is x)
    return list(captures.values())


def may_capture(f: Any) -> bool:
    """Whether a function may hold values: in its closure, its defaults, its attributes."""
    if type(f) is not FunctionType:
        return f is not None
    return bool(f.__closure__ or f.__defaults__ or f.__kwdefaults__ or f.__dict__)


def _within(x: Any, name: str, seen: set[int], depth: int) -> Iterator[tuple[str, Tracer]]:
    if isinstance(x, Tracer):
        yield name, x
        return
    if type(x) in _ATOMS or depth == 0 or id(x) in seen:
        return
    seen.add(id(x))
    for part, inner in _parts(x, name):
        yield from _within(inner, part, seen, depth - 1)


def _parts(x: Any, name: str) -> Iterable[tuple[str, Any]]:
    if type(x) is FunctionType:
        return _of_function(x)
    if isinstance(x, partial):
        named = [(k, v) for k, v in x.keywords.items()]
        return [(name, x.func), *[(name, a) for a in x.args], *named]
    if type(x) is MethodType:
        return [(name, x.__func__), ("self", x.__self__)]
    if isinstance(x, tuple | list | deque):
        return [(f"{name}[{i}]", v) for i, v in enumerate(x) if type(v) not in _ATOMS]
    if isinstance(x, dict):
        # A copy: the repr of a key may change the dictionary, and so may other threads.
        return [(f"{name}[{k!r}]", v) for k, v in dict.copy(x).items() if type(v) not in _ATOMS]
    if isinstance(x, ModuleType | type):
        return ()
    if isinstance(x, Sealed):
        return [(name, v) for v in x.functions]
    transformed = package_of(type(x)) == _PACKAGE and hasattr(x, "__wrapped__")
    return [
        (f"{name}.{k}", v)
        for k, v in _attributes(x)
        if type(v) not in _ATOMS
        and (callable(v) or isinstance(v, Sealed) or not transformed)  # not their caches
    ]


def _attributes(x: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds in its ``__dict__`` and its slots."""
    attributes = getattr(x, "__dict__", None)
    if type(attributes) is dict:
        yield from attributes.copy().items()
    for kind in type(x).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if type(slots) is str else slots:
            if not name.startswith("__") and hasattr(x, name):
                yield name, getattr(x, name)


def _of_function(f: FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or ()):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    for i, x in enumerate(f.__defaults__ or ()):
        yield f"default {i} of {f.__name__}", x
    yield from dict(f.__kwdefaults__ or {}).items()
    yield from f.__dict__.copy().items()


def _live(tracer: Tracer) -> bool:
    above: Trace | None = current_trace.get()
    while above is not None:
        if above.knows(tracer):
            return True
        above = getattr(above, "parent", None)
    return False


__all__ = ["closure_convert"]


@dataclass(frozen=True, eq=False)
class Staged:
    """A function traced for arguments of certain types.

    Attributes
    ----------
    name : str
    jaxpr : Jaxpr
        From traced values that the function captured, and the leaves of its arguments.
    in_tree, out_tree : PyTreeDef
        Of the tuple of arguments, and of the result.
    """

    name: str
    jaxpr: Jaxpr
    in_tree: PyTreeDef
    out_tree: PyTreeDef

    @staticmethod
    def of(fun: Callable[..., PyTree], args: Sequence[Aval], treedef: PyTreeDef) -> tuple[Staged, list[Any]]:
        """The function, and the traced values that it captured."""
        flat = Flat(fun, treedef, lambda f, tree: f(*tree))
        jaxpr, captured = lift_tracers(stage(flat, args, name_of(fun)))
        return Staged(name_of(fun), jaxpr, treedef, flat.out_tree), list(captured)

    def __call__(self, captured: Sequence[Any], leaves: Sequence[Any]) -> PyTree:
        """The result, for leaves of the right types."""
        outs = evaluate(self.jaxpr, [*captured, *leaves])
        return tree_unflatten(self.out_tree, [given(x) for x in outs])


@checked
def closure_convert(fun: Callable[..., PyTree], *example_args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """The same function without what it captured, and that apart: so that it may be passed to a rule as an argument.

    Parameters
    ----------
    fun : callable
        Of arrays and trees of arrays. It may read values that are being differentiated, mapped, or traced.
    *example_args
        Its arguments, of which structure, shapes and dtypes are used; `ShapeDtypeStruct` will do for an array.

    Returns
    -------
    converted : callable
        ``converted(*args, *consts)`` is ``fun(*args)``.
    consts : list of arrays
        The traced values that `fun` captured. Arrays of known numbers stay where they are.

    Raises
    ------
    ArgumentError
        If `fun` is not a function; when called: if the number of arguments is wrong.
    PytreeError, ShapeError, DtypeError
        When called: arguments of another structure, shape, or kind of dtype than the example.

    Notes
    -----
    A function with a rule may not read values that are being differentiated unless they are its arguments. Where such a
    function takes another function, as a solver does, convert that one, and pass on what it captured. `fun` is traced
    once, here.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functools import partial
    >>> def minimize(loss, x):  # one that takes Newton steps
    ...     converted, consts = ft.closure_convert(loss, x)
    ...     return minimizer(converted, x, *consts)
    >>> @partial(ft.custom_vjp, nondiff_argnums=0)
    ... def minimizer(loss, x, *consts):
    ...     for _ in range(5):
    ...         x = x - ft.grad(loss)(x, *consts) / ft.grad(ft.grad(loss))(x, *consts)
    ...     return x
    >>> def fwd(loss, x, *consts):
    ...     best = minimizer(loss, x, *consts)
    ...     return best, (best, consts)
    >>> def bwd(loss, residuals, ct):  # the implicit function theorem
    ...     best, consts = residuals
    ...     scale = -ct / ft.grad(ft.grad(loss))(best, *consts)
    ...     slope = ft.vjp(lambda *consts: ft.grad(loss)(best, *consts), *consts)[1]
    ...     return None, *slope(scale)
    >>> minimizer.defvjp(fwd, bwd)
    >>> ft.grad(lambda a: minimize(lambda x: fnp.cosh(x - a * a), 1.0))(0.5)
    Array(1.)
    """
    check_function("closure_convert", fun)
    leaves, in_tree = tree_flatten(example_args)
    name = f"closure_convert of {name_of(fun)}"
    avals = [struct_aval(x, lambda: f"{name}: an example argument") for x in leaves]
    staged, captured = Staged.of(fun, avals, in_tree)
    count, extra = len(example_args), len(captured)
    places = [f"{name}: {argument_name(fun, i)}" for i in range(count)]

    def converted(*args: Value) -> Value:  # must not hold `fun`, nor what that captured
        if len(args) != count + extra:
            raise errors.ArgumentError(
                f"{name}: it was converted for {count} arguments and captured {extra} values, so it takes "
                f"{count + extra}, but was called with {len(args)}: converted(*args, *consts)"
            )
        values = _fitted(args[:count], in_tree, avals, places)
        consts = flatten_values(list(args[count:]), lambda path: f"{name}: consts{keystr(path)}")[0]
        return staged(consts, values)

    return converted, [given(x) for x in captured]


def _fitted(
    args: tuple[Value, ...], treedef: PyTreeDef, avals: Sequence[Aval], places: Sequence[str]
) -> list[Value]:
    """The leaves of arguments, in the types that the function was traced for."""

    def place(path: KeyPath) -> str:
        return f"{places[path[0].idx]}{keystr(path[1:])}"

    values, tree = flatten_values(args, place)
    mismatch = TreeSpec(treedef, avals).mismatch(tree, map(aval_of, values), same_kind)
    if mismatch is None:
        return [convert(x, a.dtype) for x, a in zip(values, avals)]
    aspect, path, expected, got, _ = mismatch
    if aspect == "structure":
        raise errors.PytreeError(f"{place(path)} is {got}, but it was converted for {expected}")
    error, cure = (
        (errors.ShapeError, "") if aspect == "shape" else (errors.DtypeError, "; convert with .astype")
    )
    raise error(
        f"{place(path)} has {aspect} {getattr(got, aspect)}, but it was converted for "
        f"{aspect} {getattr(expected, aspect)}{cure}"
    )
