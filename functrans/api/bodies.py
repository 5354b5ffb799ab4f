"""The bodies of loops and branches: from a user's functions to jaxprs of flat values.

A body is traced with strong values, because a loop's buffer has one dtype throughout. A carry that started as a Python
number is still passed to the user's function as a weak value, and returned as one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..arrays.autocast import made
from ..arrays.ref import Ref
from ..control.bodies.cache import interned
from ..core import (
    Attachment,
    Aval,
    Jaxpr,
    Source,
    Var,
    aval_of,
    dtype_kind,
    is_float,
    last_line,
    promote,
    user_source,
)
from ..core.values import PyTree, Value
from ..errors import CarryTypeError
from ..frontend.arguments import Flat, name_of, result
from ..frontend.pytree import PyTreeDef
from ..frontend.tree_spec import TreeSpec
from ..passes.masks import split
from ..passes.toolkit import lift_constants
from ..primitives.elementwise.arithmetic import weakly
from ..primitives.operands import strong
from ..runtime.records import NamedTuple
from ..transforms.stage import Uses, attach_to, stage


class Body(NamedTuple):
    """A traced body.

    Attributes
    ----------
    jaxpr : Jaxpr
        From constants and inputs to outputs.
    consts : tuple of values
        The values that the function captured: the leading operands.
    out_tree : PyTreeDef
    outs : list of Aval
        The types of its outputs.
    sources : list of Source or None
        The user's line that each output comes from.
    hooks : list of Attachment
        Those that it registers on values of enclosing traces; to be attached once, however often it is traced.
    uses : Uses
        The refs from outside that it uses, which follow the inputs and outputs of the jaxpr; `outs` and `sources` leave
        them out.
    casts : bool
        Whether autocast changed dtypes in it.
    """

    jaxpr: Jaxpr
    consts: tuple[Any, ...]
    out_tree: PyTreeDef
    outs: list[Aval]
    sources: list[Source | None]
    hooks: list[Attachment]
    uses: Uses = Uses()
    casts: bool = False


def trace_body(
    fun: Callable[..., PyTree],
    avals: Sequence[Aval],
    treedef: PyTreeDef,
    call: Callable[..., PyTree],
    expected: Sequence[Aval] = (),
    uses: Uses | None = None,
    casts: bool = False,
) -> Body:
    """Trace a body. Leading outputs that are Python numbers take the dtype of `expected`, if it is of their kind. Where
    autocast changes dtypes in the body, or with `casts`, so do real floating-point numbers.
    """
    flat = Flat(fun, treedef, call)
    uses = Uses() if uses is None else uses

    before = made.count

    def body(*values: Value) -> list[Value]:
        outs = flat(*[weakly(x) if a.weak else x for x, a in zip(values, avals)])
        own = casts or made.count != before
        return [as_expected(x, a, own) for x, a in zip(outs, expected)] + outs[len(expected) :]

    hooks: list[Attachment] = []
    strong_avals = [a.strong() for a in avals]
    staged = stage(
        body, strong_avals, name_of(fun), hooks=hooks, hoist=False, uses=uses, argument=flat.argument
    )
    opened, consts = lift_constants(staged)
    count = len(staged.outvars) - sum(uses.written)
    outs, sources = staged.out_avals[:count], _sources(staged, fun)[:count]
    return Body(interned(opened), consts, flat.out_tree, outs, sources, hooks, uses, made.count != before)


class LoopBody(NamedTuple):
    """A body of a loop whose refs are carried, after the rest of its carry; those that it only reads are constants.

    Attributes
    ----------
    jaxpr : Jaxpr
    consts, carried : list
        Its constants, and the first values of the refs in its carry.
    refs : list of Ref
        Those in the carry.
    """

    jaxpr: Jaxpr
    consts: list[Any]
    carried: list[Any]
    refs: list[Ref]

    def put_back(self, outs: Sequence[PyTree], carry: int) -> list[Any]:
        """Store the last values of the refs, which follow `carry` values; return the other results."""
        count = len(self.refs)
        for ref, value in zip(self.refs, outs[carry : carry + count]):
            ref.put(value)
        return [*outs[:carry], *outs[carry + count :]]


def loop_body(body: Body, carry: int, rows: int = 0) -> LoopBody:
    """The body of a loop that carries refs. Without the refs it carries `carry` values, and reads `rows` rows."""
    uses = body.uses
    if not uses.refs:
        return LoopBody(body.jaxpr, list(body.consts), [], [])
    written = tuple(uses.written)

    def build() -> Jaxpr:
        invars, outvars = body.jaxpr.invars, body.jaxpr.outvars
        first = len(body.consts)
        consts, own, of_rows, refs = split(invars, first, carry, rows)
        own_outs, out_rows, out_refs = split(outvars, carry, len(outvars) - carry - sum(written))
        read = [v for v, w in zip(refs, written) if not w]
        changed = [v for v, w in zip(refs, written) if w]
        return body.jaxpr.replace(
            invars=[*consts, *read, *own, *changed, *of_rows], outvars=[*own_outs, *out_refs, *out_rows]
        )

    jaxpr = body.jaxpr.derive(("refs in the carry", len(body.consts), carry, rows, written), build)
    values = [ref.take() for ref in uses.refs]
    read = [x for x, w in zip(values, written) if not w]
    changed = [x for x, w in zip(values, written) if w]
    return LoopBody(jaxpr, [*body.consts, *read], changed, [r for r, w in zip(uses.refs, written) if w])


def _sources(jaxpr: Jaxpr, fun: Callable[..., PyTree]) -> list[Source | None]:
    """The line in the body that computed each output; the body's last line for outputs not computed in it."""
    lines = {v: eqn.source for eqn in jaxpr.eqns for v in eqn.outvars}
    sources = [lines.get(a) if type(a) is Var else None for a in jaxpr.outvars]
    call, end = user_source(), last_line(fun)
    return [end if s is None or s == call else s for s in sources]


def as_expected(x: PyTree, expected: Aval, casts: bool) -> Value:
    """An output in the dtype expected of it, if it is a number of that kind, or if autocast gave it another.

    A carry keeps its dtype: what autocast made of it in the body is cast back.
    """
    aval = aval_of(x)
    if expected.weak or aval.shape != expected.shape or (aval.dtype == expected.dtype and not aval.weak):
        return x
    if aval.weak:
        takes = dtype_kind(aval.dtype) == dtype_kind(expected.dtype)
    else:
        takes = casts and is_float(aval.dtype) and is_float(expected.dtype)
    return strong(x, expected.dtype) if takes else x


# --- carries ------------------------------------------------------------------------------------------------


class CarryBody(NamedTuple):
    """A body whose carry has the same type on both sides, and the initial carry converted to that type."""

    body: Body
    init: list[Any]
    weak: list[bool]


def trace_carry(
    what: str,
    fun: Callable[..., PyTree],
    init: Sequence[PyTree],
    tree: PyTreeDef,
    trace: Callable[[list[Aval]], Body],
    of_carry: Callable[[PyTreeDef], PyTreeDef] = lambda tree: tree,
) -> CarryBody:
    """Trace a body until the type of its carry is stable; a Python number takes the dtype that the body gives it.

    Parameters
    ----------
    what : str
        The function of ``functrans.lax``, for messages.
    fun : callable
    init, tree
        The leaves and the structure of the initial carry.
    trace : callable
        From the types of the carry to the body, whose first outputs are the carry.
    of_carry : callable
        From the structure of the body's results to that of the carry in them.

    Raises
    ------
    CarryTypeError
    """
    avals = [aval_of(x) for x in init]
    while True:
        body = trace(avals)
        check_structure(what, fun, tree, of_carry(body.out_tree))
        after = [joined(a, b) for a, b in zip(avals, body.outs)]
        if after == avals:
            break
        avals = after
    check_types(what, fun, tree, avals, body.outs, body.sources)
    attach_to(body.hooks)
    weak = [a.weak and b.weak for a, b in zip(avals, body.outs)]
    return CarryBody(body, [strong(x, a.dtype) for x, a in zip(init, avals)], weak)


def joined(a: Aval, b: Aval) -> Aval:
    """The type of a carry that goes in as `a` and comes out as `b`: that of `b`, if `a` is a number that fits it.

    It differs between the ranks of a mesh if either does.
    """
    a = a.over(a.vma | b.vma)
    if not a.weak or a.shape != b.shape or a.dtype == b.dtype:
        return a
    dtype, _ = promote([(a.dtype, True), (b.dtype, b.weak)])
    return Aval(a.shape, dtype, b.weak).over(a.vma) if dtype == b.dtype else a


def carry_out(values: Sequence[PyTree], weak: Sequence[bool]) -> list[Value]:
    """The final carry for the user: a number that was weak throughout stays weak."""
    return [result(weakly(x) if w else x) for x, w in zip(values, weak)]


def check_structure(what: str, fun: Callable[..., PyTree], tree: PyTreeDef, returned: PyTreeDef) -> None:
    """Raise `CarryTypeError` if a carry comes out with another structure than it went in with."""
    mismatch = TreeSpec(tree, ()).mismatch(returned, ())
    if mismatch is not None:
        raise CarryTypeError(
            f"{what} of {name_of(fun)}: the carry changes its structure{mismatch.at}: {mismatch.expected} goes in, "
            f"{mismatch.got} comes out. The body must return a carry with the structure that it receives\n"
            f"  goes in as:   {tree}\n"
            f"  comes out as: {returned}",
            last_line(fun),
        )


def check_types(
    what: str,
    fun: Callable[..., PyTree],
    tree: PyTreeDef,
    before: Sequence[Aval],
    after: Sequence[Aval],
    sources: Sequence[Source | None],
) -> None:
    """Raise `CarryTypeError` if a leaf of a carry comes out with another shape or dtype."""
    mismatch = TreeSpec(tree, before).mismatch(tree, after)
    if mismatch is None:
        return
    aspect, _, a, b, i = mismatch
    if aspect == "shape":
        cure = "Start with a carry of the shape that the body returns, or return the shape that the body receives"
    else:
        cure = f"Start with a carry of dtype {b.dtype}, or return it converted by `.astype({str(a.dtype)!r})`"
    raise CarryTypeError(
        f"{what} of {name_of(fun)}: the carry changes its type{mismatch.at}: {a} goes in, {b} comes out. {cure}",
        sources[i],
    )
