"""A record of a primitive whose rules are added one by one, in the forms that JAX gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

from ..arrays.array import unwrap, wrap
from ..core import Aval, Primitive, Zero, aval_of
from ..core.primitive import CallRules
from ..errors import NoRuleError
from ..primitives.operands import operand
from ..transforms.stage import stage


def unwrapped(x: Any) -> Any:
    """A result of a user's rule as interpreters take it: a symbolic zero is one already."""
    return x if x is None or isinstance(x, Zero) else operand(unwrap(x), "a rule of a primitive")


class ExtendedPrimitive(Primitive):
    """A primitive with JAX's methods: ``functrans.extend.core.Primitive``.

    Parameters
    ----------
    name : str

    Attributes
    ----------
    multiple_results : bool
        Whether it has several results; set it before its first use.

    Notes
    -----
    In compiled programs it is what its implementation computes (`def_impl`, or `extend.mlir.register_lowering` of
    `extend.mlir.lower_fun`), by functrans's primitives: it needs no code for a compiler. Its derivative, transpose and
    batching are rules of its own, in ``extend.ad.primitive_jvps``, ``extend.ad.primitive_transposes`` and
    ``extend.batching.primitive_batchers``.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans import extend
    >>> square_p = extend.core.Primitive("square")
    >>> impl = square_p.def_impl(lambda x: x * x)
    >>> abstract = square_p.def_abstract_eval(lambda x: x)
    >>> extend.ad.primitive_jvps[square_p] = lambda xs, ts: (square_p.bind(*xs), 2.0 * xs[0] * ts[0])
    >>> ft.jit(ft.grad(square_p.bind))(3.0)
    Array(6.)
    """

    #: JAX's marks of primitives that apply functions; these do not.
    call_primitive = map_primitive = False

    def __init__(self, name: str, multiple_results: bool = False):
        super().__init__(
            name=name,
            abstract=partial(_missing, name, "def_abstract_eval"),
            impl=partial(_missing, name, "def_impl"),
            multiple_results=multiple_results,
            call=CallRules(opaque=True, expand=self._expand),
        )

    def __setattr__(self, name: str, value: Any) -> None:  # unlike other records it is built step by step
        object.__setattr__(self, name, value)

    def _results(self, out: Any) -> Any:
        return list(map(unwrapped, out)) if self.multiple_results else unwrapped(out)

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """Say how it is computed, ``impl(*arrays, **params)``, by functions that can be traced."""
        self._computed_by(impl)
        return impl

    def _computed_by(self, impl: Callable[..., Any]) -> None:
        def computed(*args: Any, **params: Any) -> Any:
            return self._results(impl(*map(wrap, args), **params))

        self.impl = computed  # type: ignore[misc]
        self.lowered = computed

    def def_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Say what types its results have, ``rule(*avals, **params)``."""

        def abstract(*avals: Aval, **params: Any) -> Any:
            out = rule(*avals, **params)
            return tuple([a.strong() for a in out]) if self.multiple_results else out.strong()

        self.abstract = abstract  # type: ignore[misc]
        return rule

    def def_effectful_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """As `def_abstract_eval`, for a rule that also returns JAX's effects, which are ignored."""
        self.def_abstract_eval(lambda *avals, **params: rule(*avals, **params)[0])
        return rule

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply it to arrays, numbers or traced values."""
        out = super().bind(*[operand(x, self.name, i) for i, x in enumerate(args)], **params)
        return list(map(wrap, out)) if self.multiple_results else wrap(out)

    def _expand(self, *avals: Aval, **params: Any) -> Any:
        computed: Callable[..., Any] = getattr(self, "lowered", self.impl)

        def results(*args: Any) -> Sequence[Any]:
            out = computed(*args, **params)
            return out if self.multiple_results else [out]

        return stage(results, avals, self.name)


def _missing(name: str, method: str, *args: Any, **params: Any) -> NoReturn:
    raise NoRuleError(f"primitive '{name}': call its {method} first")


def typed(x: Any) -> Aval:
    """The aval of an array, a number or a traced value."""
    return aval_of(unwrap(x))
