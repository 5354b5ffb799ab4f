"""A traced function and the later stages of compilation, for users to inspect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ...arrays.array import wrap
from ...control.call import call_p
from ...core import Attachment, Eqn, Jaxpr, Primitive, Unportable, current_trace, eval_trace
from ...core.values import Param, PyTree
from ...frontend.arguments import flatten_values, results
from ...frontend.pytree import PyTreeDef, tree_unflatten
from ...frontend.pytree.nodes import keystr
from ...frontend.structs import struct_of
from ...runtime.module_getattr import lazy_import
from ...runtime.records import NamedTuple
from ...transforms.stage import Uses, attached
from ..refs import put_back
from .donation import donating, with_arrays
from .static import check_types
from .traced_blocks import MetBlock

if TYPE_CHECKING:
    from ...lowering.run.memory import MemoryAnalysis

pictures = lazy_import("functrans.passes.pictures.picture")
analysis = lazy_import("functrans.passes.cost_analysis")
texts = lazy_import("functrans.lowering.run.texts")


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


def bound(prim: Primitive, traced: Traced, values: Sequence[Any], **options: Param) -> Any:
    """The result of a call primitive that applies a traced function, with its hooks and refs."""
    used = [ref.take() for ref in traced.uses.refs]
    jaxpr = traced.jaxpr if traced.hooked is None else traced.hooked
    outs = prim.bind(*traced.captured, *values, *used, jaxpr=jaxpr, **options)
    own = put_back(traced.uses, attached(traced.hooks, [*values, *used], outs))
    return tree_unflatten(traced.out_tree, list(map(wrap, own)))


class _Inspected(Unportable):
    """What a traced, a lowered and a compiled function show of their program."""

    _kind: ClassVar[str]

    def __init__(self, traced: Traced, in_tree: PyTreeDef):
        self._traced = traced
        self._in_tree = in_tree

    def _called(self) -> str:
        return f"the {self._kind} function {self._traced.jaxpr.name}"

    def __repr__(self) -> str:
        return f"<{self._kind} {self._traced.jaxpr.name}>"

    @property
    def in_tree(self) -> PyTreeDef:
        """The structure of the arguments: of the pair of those by position and those by name."""
        return self._in_tree

    @property
    def out_tree(self) -> PyTreeDef:
        """The structure of the result."""
        return self._traced.out_tree

    @property
    def args_info(self) -> PyTree:
        """The shapes and dtypes of the arguments, in their structure."""
        start = len(self._traced.captured)
        avals = self._traced.jaxpr.in_avals[start : start + self._in_tree.num_leaves]
        return tree_unflatten(self._in_tree, list(map(struct_of, avals)))

    @property
    def out_info(self) -> PyTree:
        """The shapes and dtypes of the results, in their structure."""
        tree = self._traced.out_tree
        return tree_unflatten(tree, list(map(struct_of, self._traced.jaxpr.out_avals[: tree.num_leaves])))

    @property
    def _program(self) -> Any:
        """The `Executable`, of which nothing need be compiled yet."""
        return donating(self._traced.jaxpr, self._traced.donated).form

    def drawn(self) -> tuple[Jaxpr, dict[Eqn, int]]:
        """The simplified program, and the number of the kernel that computes an equation; -1 for a host call."""
        program = self._program
        return program.simplified, program.kernel_numbers()

    def _repr_html_(self) -> str:
        """What a notebook shows: the picture, with a colour for each kernel, and the kernels as Python."""
        return pictures.html_of(pictures.Drawn(*self.drawn()), self._program.as_text("python"))


class _Uncompiled(_Inspected):
    """What still is the program that was traced."""

    @property
    def jaxpr(self) -> Jaxpr:
        """The traced program."""
        return self._traced.jaxpr


class TracedFunction(_Uncompiled):
    """A function traced for one combination of argument types.

    Attributes
    ----------
    jaxpr : Jaxpr
    """

    _kind = "traced"

    @property
    def fun_name(self) -> str:
        """The name of the function."""
        return self.jaxpr.name

    def lower(self) -> Lowered:
        """The function lowered for these arguments."""
        return Lowered(self._traced, self._in_tree)


class Lowered(_Uncompiled):
    """A function lowered for one combination of argument types.

    Attributes
    ----------
    jaxpr : Jaxpr
    """

    _kind = "lowered"

    def as_text(self, dialect: str = "jaxpr") -> str:
        """The program as text.

        Parameters
        ----------
        dialect : {'jaxpr', 'loops', 'python', 'llvm'}
            The traced program; or its kernels, with host calls between them: in loop IR, as readable Python, or in
            LLVM's. Above each kernel are the user's lines that it computes.

        Raises
        ------
        ArgumentValueError
            If it is another one.

        Examples
        --------
        >>> import functrans as ft
        >>> lowered = ft.jit(lambda x: 2.0 * x).lower(ft.ShapeDtypeStruct((3,), "float64"))
        >>> print(lowered.as_text())
        lambda a:f64[3].
          b:f64[3] = mul 2.0 a
          return (b,)
        """
        texts.check_dialect(self._called(), dialect, compiled=False)
        return str(self.jaxpr) if dialect == "jaxpr" else self._program.as_text(dialect)

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The program as the compiler has it: the jaxpr, or with another dialect of `as_text`, its text.

        Raises
        ------
        ArgumentValueError
            If there is no such dialect: there is no HLO.

        Examples
        --------
        >>> import functrans as ft
        >>> lowered = ft.jit(lambda x: 2.0 * x).lower(ft.ShapeDtypeStruct((3,), "float64"))
        >>> lowered.compiler_ir() is lowered.jaxpr
        True
        """
        return self.jaxpr if dialect in (None, "jaxpr") else self.as_text(dialect)

    def cost_analysis(self) -> dict[str, int]:
        """The cost of the traced program; see `functrans.ir.cost_analysis`.

        Returns
        -------
        dict
            ``"flops"``, ``"transcendentals"``, ``"bytes accessed"`` and ``"unknown loops"``.

        Examples
        --------
        >>> import functrans as ft
        >>> x = ft.ShapeDtypeStruct((100, 100), "float64")
        >>> ft.jit(lambda x: x @ x).lower(x).cost_analysis()["flops"]
        2000000
        """
        cost: dict[str, int] = analysis.cost_analysis(self.jaxpr)
        return cost

    def compile(self, compiler_options: dict[str, Any] | None = None) -> Compiled:
        """Compile now; returns a callable that takes arguments of exactly these types. Options have no effect."""
        donating(self.jaxpr, self._traced.donated).compile()
        return Compiled(self._traced, self._in_tree)


class Compiled(_Inspected):
    """A compiled function for one combination of argument types. Calls omit static arguments."""

    _kind = "compiled"
    _instead = "Send the jitted function, and compile it there"

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> Any:
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

    def as_text(self, dialect: str = "jaxpr") -> str:
        """The program as text.

        Parameters
        ----------
        dialect : {'jaxpr', 'loops', 'python', 'llvm', 'asm'}
            The form of its kernels, as for `Lowered.as_text`: ``'jaxpr'`` is the simplified program, ``'asm'`` the
            code of this processor.

        Raises
        ------
        ArgumentValueError
            If it is another one.
        """
        texts.check_dialect(self._called(), dialect, compiled=True)
        text: str = self._program.as_text(dialect)
        return text

    def cost_analysis(self) -> dict[str, int]:
        """The cost of the simplified program; see `functrans.ir.cost_analysis`.

        Returns
        -------
        dict
            ``"flops"``, ``"transcendentals"``, ``"bytes accessed"`` and ``"unknown loops"``. The bytes are those of the
            inputs and outputs of kernels and host calls only: values inside a kernel need no memory.

        Examples
        --------
        >>> import functrans as ft, functrans.numpy as fnp
        >>> x = ft.ShapeDtypeStruct((1000,), "float64")
        >>> ft.jit(lambda x: fnp.exp(x) * x + 1.0).lower(x).compile().cost_analysis()["bytes accessed"]
        16000
        """
        program = self._program
        cost: dict[str, int] = analysis.cost_analysis(program.simplified)
        return cost | {"bytes accessed": program.bytes_accessed()}

    def memory_analysis(self) -> MemoryAnalysis:
        """The memory that a call takes, in bytes.

        Returns
        -------
        MemoryAnalysis
            With ``argument_size_in_bytes``, ``output_size_in_bytes``, ``temp_size_in_bytes`` (the most scratch memory
            and values between kernels at a time), ``alias_size_in_bytes`` (results in the memory of donated arguments)
            and ``generated_code_size_in_bytes``.

        Examples
        --------
        >>> import functrans as ft
        >>> x = ft.ShapeDtypeStruct((1000,), "float64")
        >>> memory = ft.jit(lambda x: 2.0 * x).lower(x).compile().memory_analysis()
        >>> memory.argument_size_in_bytes, memory.output_size_in_bytes, memory.temp_size_in_bytes
        (8000, 8000, 0)
        """
        memory: MemoryAnalysis = self._program.memory_analysis()
        return memory
