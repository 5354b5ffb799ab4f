"""`aot_function`: a function whose forward and backward programs you compile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..api.compiled.jitted import Jitted
from ..api.compiled.lowered import bound
from ..api.compiled.static import DonatedArguments, StaticArguments
from ..control.residuals.compiled_pair import Compile, PairPlan, aot_p
from ..control.residuals.partitioner import Partitioner, checked_choice, partition
from ..core import Transformed, aval_of
from ..core.values import PyTree
from ..frontend.arguments import argument_at, check_function, flatten_values
from ..frontend.checked import checked
from ..runtime.config import config


class AotFunction(Transformed):
    """What `aot_function` returns."""

    def __init__(self, fun: Callable[..., PyTree], signature: StaticArguments, plan: PairPlan):
        super().__init__("aot_function", fun)
        self._jitted = Jitted(fun, signature, DonatedArguments(fun, None, None))
        self._plan = plan

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> Any:
        """Run the forward program."""
        if config.disable_jit:
            return self._fun(*args, **kwargs)
        jitted = self._jitted
        split = jitted._signature.split(self._fun, args, kwargs)
        values, treedef = flatten_values(split.dynamic, partial(argument_at, "aot_function", self._fun))
        traced = jitted._traced(split, [aval_of(x) for x in values], treedef)
        return bound(aot_p, traced, values, plan=self._plan)


@checked
def aot_function(
    fun: Callable[..., PyTree],
    *,
    fw_compiler: Compile | None = None,
    bw_compiler: Compile | None = None,
    partition_fn: Partitioner | None = None,
    static_argnums: int | Sequence[int] | None = None,
) -> Callable[..., PyTree]:
    """Compile the forward and the backward program of `fun` with your own compilers.

    Parameters
    ----------
    fun : callable
        A function of arrays and pytrees of arrays.
    fw_compiler, bw_compiler : callable, optional
        ``fw_compiler(jaxpr)`` returns a callable that takes an array for each input of the `Jaxpr`, and returns a list
        with an array for each output. It compiles the program without derivatives, and the forward program of reverse
        mode; `bw_compiler` compiles the backward program, when a pullback first runs. By default `compile_jaxpr`
        compiles them, as `jit` does.
    partition_fn : callable, optional
        What the forward program saves; see `trace_pair`.
    static_argnums : int or sequence of int
        As for `jit`.

    Returns
    -------
    callable
        It takes the arguments of `fun`. It may be differentiated any number of times, and mapped. Inside a compiled
        function it becomes a part of that program.

    Raises
    ------
    PartitionError
        When a derivative is taken, if `partition_fn` makes an invalid choice.
    ArgumentError, ArgumentValueError
        When a program first runs, if a compiler returns no callable, or the callable something else than a list of
        arrays with the shapes and dtypes of the outputs.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> def show(jaxpr):
    ...     print(jaxpr)
    ...     return ft.aot.compile_jaxpr(jaxpr)
    >>> f = ft.aot.aot_function(lambda x: fnp.sin(x) * 2.0, bw_compiler=show)
    >>> y, pull = ft.vjp(f, 0.0)
    >>> pull(1.0)
    lambda a:f64[]* b:f64[].
      c:f64[] = convert_element_type[dtype=float64, weak=False] a
      d:f64[] = cos c
      e:f64[] = mul b 2.0
      f:f64[] = mul e d
      return (f,)
    (Array(2.),)
    """
    check_function("aot_function", fun)
    choose = partition if partition_fn is None else checked_choice(partition_fn)
    return AotFunction(
        fun, StaticArguments(fun, static_argnums, None), PairPlan(fw_compiler, bw_compiler, choose)
    )
