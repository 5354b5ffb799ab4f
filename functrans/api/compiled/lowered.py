"""A traced function and the later stages of compilation, for users to inspect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...arrays.array import wrap
from ...control.call import call_p
from ...core import Attachment, Jaxpr, Primitive, Unportable, current_trace, eval_trace
from ...frontend.arguments import flatten_values, results
from ...frontend.pytree import PyTreeDef, tree_unflatten
from ...frontend.pytree.nodes import keystr
from ...transforms.stage import Uses, attached
from ..refs import put_back
from .donation import donating, with_arrays
from .static import check_types
from .traced_blocks import MetBlock


class Traced(NamedTuple):
    """A traced function: its jaxpr, the structure of its result, and values of enclosing traces that it captured.

    `hooks` are those that it registers on its arguments, which they name by place. `donated` are the numbers of the
    leaves whose memory the result may take. `blocks` are the hookable functions that it calls. `uses` are the refs from
    outside that it uses, which follow the inputs and outputs of the jaxpr. `hooked` is the jaxpr for transformations:
    what hooks on its arguments captured are results of it, behind all others.
    """

    jaxpr: Jaxpr
    out_tree: PyTreeDef
    captured: tuple[Any, ...]
    hooks: tuple[Attachment, ...] = ()
    donated: tuple[int, ...] = ()
    blocks: tuple[MetBlock, ...] = ()
    uses: Uses = Uses()
    hooked: Jaxpr | None = None

    @property
    def is_lasting(self) -> bool:
        """Whether it refers to nothing of a function that is being traced."""
        return not self.captured and all(ref.is_lasting for ref in self.uses.refs)

    @property
    def is_pure(self) -> bool:
        """Whether its jaxpr alone, a function of the arguments, does all that a call does."""
        return not (self.captured or self.hooks or self.blocks or self.uses.refs)


def bound(prim: Primitive, traced: Traced, values: Sequence[Any], **options: Any) -> Any:
    """The result of a call primitive that applies a traced function, with its hooks and refs."""
    used = [ref.take() for ref in traced.uses.refs]
    jaxpr = traced.jaxpr if traced.hooked is None else traced.hooked
    outs = prim.bind(*traced.captured, *values, *used, jaxpr=jaxpr, **options)
    own = put_back(traced.uses, attached(traced.hooks, [*values, *used], outs))
    return tree_unflatten(traced.out_tree, list(map(wrap, own)))


class Lowered(Unportable):
    """A function lowered for one combination of argument types.

    Attributes
    ----------
    jaxpr : Jaxpr
    """

    def __init__(self, traced: Traced, in_tree: PyTreeDef):
        self.jaxpr = traced.jaxpr
        self._traced = traced
        self._in_tree = in_tree

    def _called(self) -> str:
        return f"the lowered function {self.jaxpr.name}"

    def as_text(self) -> str:
        """The kernels as readable Python, with host calls between them."""
        return donating(self.jaxpr, self._traced.donated).as_text()

    def compile(self) -> Compiled:
        """Compile now; returns a callable that takes arguments of exactly these types."""
        donating(self.jaxpr, self._traced.donated).compile()
        return Compiled(self._traced, self._in_tree)

    def __repr__(self) -> str:
        return f"<lowered {self.jaxpr.name}>"


class Compiled(Unportable):
    """A compiled function for one combination of argument types. Calls omit static arguments."""

    _instead = "Send the jitted function, and compile it there"

    def __init__(self, traced: Traced, in_tree: PyTreeDef):
        self._traced = traced
        self._in_tree = in_tree

    def _called(self) -> str:
        return f"the compiled function {self._traced.jaxpr.name}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it on arguments of the types that it was compiled for; others raise `ArgumentError`."""
        values, treedef = flatten_values(
            (args, kwargs), lambda path: f"compiled {self._traced.jaxpr.name}: the arguments" + keystr(path)
        )
        check_types(self._traced.jaxpr, self._in_tree, treedef, values)
        jaxpr, donated, uses = self._traced.jaxpr, self._traced.donated, self._traced.uses
        if donated and current_trace.get() is eval_trace:
            used = [ref.take() for ref in uses.refs]
            values = with_arrays(values, (args, kwargs), donated)
            return results(self._traced.out_tree, put_back(uses, donating(jaxpr, donated)(*values, *used)))
        return bound(call_p, self._traced, values)

    def as_text(self) -> str:
        """As `Lowered.as_text`."""
        return donating(self._traced.jaxpr, self._traced.donated).as_text()
