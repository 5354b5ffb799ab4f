"""Numba's typed intermediate representation of a jitted function, from Numba's front end."""

from __future__ import annotations

from typing import Any

from numba import config as numba_config

from ...errors import NumbaTranslationError
from ...runtime.context import Living, cached_property
from ...runtime.private.numba_names import (
    AnalysisPass,
    CompilerBase,
    NumbaRuntimeError,
    PassManager,
    compiler,
    global_compiler_lock,
    ir,
    merge_adjacent_blocks,
    register_pass,
    typed_passes,
)
from ...runtime.records import dataclass
from ..numba_parts import Dispatcher
from .flow import ControlFlow


@dataclass(frozen=True, eq=False)
class TypedFunction:
    """A jitted function for one tuple of argument types.

    Attributes
    ----------
    name, file : str
    ir : numba.core.ir.FunctionIR
        Its blocks assign each variable by statements alone: it has no phi nodes.
    typemap : dict of str to numba.types.Type
    calltypes : dict
        The signature of each call and operator.
    arg_types : tuple of numba.types.Type
    return_type : numba.types.Type
    options : dict
        What the user gave to ``njit``.
    """

    name: str
    file: str
    ir: Any
    typemap: dict[str, Any]
    calltypes: dict[Any, Any]
    arg_types: tuple[Any, ...]
    return_type: Any
    options: dict[str, Any]

    @property
    def blocks(self) -> dict[int, Any]:
        """The basic blocks, by label."""
        return self.ir.blocks

    @cached_property
    def flow(self) -> ControlFlow:
        """Its loops, and which variables live where."""
        return ControlFlow(self.blocks, self.typemap)

    @property
    def raises_on_zero(self) -> bool:
        """Whether a division by zero raises, as in Python."""
        return self.options.get("error_model", "python") == "python"

    @property
    def checks_bounds(self) -> bool:
        """Whether an index out of bounds raises."""
        forced = numba_config.BOUNDSCHECK
        return bool(self.options.get("boundscheck") if forced is None else forced)


@register_pass(mutates_CFG=False, analysis_only=True)
class _Finish(AnalysisPass):
    """Ends the pipeline before anything is compiled."""

    _name = "functrans_finish"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        raise compiler._EarlyPipelineCompletion(state)


class _FrontEnd(CompilerBase):
    """Numba's pipeline as far as types are inferred."""

    def define_pipelines(self) -> list[Any]:
        passes = PassManager("functrans")
        passes.passes.extend(compiler.DefaultPassBuilder.define_untyped_pipeline(self.state).passes)
        passes.add_pass(typed_passes.NopythonTypeInference, "nopython frontend")
        passes.add_pass(typed_passes.AnnotateTypes, "annotate types")
        passes.add_pass(typed_passes.PreLowerStripPhis, "remove phi nodes")
        passes.add_pass(_Finish, "stop before lowering")
        passes.finalize()
        return [passes]


_KNOWN: Living[dict[tuple[Any, ...], TypedFunction]] = Living()


def typed_function(dispatcher: Dispatcher, arg_types: tuple[Any, ...]) -> TypedFunction:
    """The typed representation of a jitted function, cached on it.

    Raises
    ------
    numba.core.errors.NumbaError
        What Numba raises for the function itself.
    """
    known = _KNOWN.setdefault(dispatcher, {})
    if arg_types not in known:
        with global_compiler_lock:
            known[arg_types] = _typed(dispatcher, arg_types)
    return known[arg_types]


def _typed(dispatcher: Dispatcher, arg_types: tuple[Any, ...]) -> TypedFunction:
    flags = compiler.Flags()
    flags.nrt = True
    flags.enable_looplift = False
    dispatcher.typingctx.refresh()
    dispatcher.targetctx.refresh()
    front = _FrontEnd(
        dispatcher.typingctx, dispatcher.targetctx, None, arg_types, None, flags, dict(dispatcher.locals)
    )
    try:
        state = front.compile_extra(dispatcher.py_func)
    except NumbaRuntimeError as error:
        if "re-entrant" not in str(error):
            raise
        code = dispatcher.py_func.__code__
        raise NumbaTranslationError(
            f"numba_call of {dispatcher.py_func.__qualname__}: recursion has no translation ({code.co_filename}:"
            f"{code.co_firstlineno}). For derivatives and vmap, write it as a loop; or give numba_call a rule: vjp=, "
            "or jvp="
        ) from error
    # The first block of a long loop only jumps to the one that asks the iterator.
    merge_adjacent_blocks(state.func_ir.blocks)
    return TypedFunction(
        dispatcher.py_func.__qualname__,
        state.func_ir.loc.filename,
        state.func_ir,
        state.typemap,
        state.calltypes,
        arg_types,
        state.return_type,
        dict(dispatcher.targetoptions),
    )


def constant_of(function: TypedFunction, var: ir.Var) -> Any:
    """The global, closure variable or literal that a variable stands for; KeyError if it is computed."""
    definition = function.ir.get_definition(var)
    if isinstance(definition, (ir.Global, ir.FreeVar, ir.Const)):
        return definition.value
    raise KeyError(var.name)
