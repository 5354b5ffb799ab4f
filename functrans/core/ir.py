"""The intermediate representation: variables, literals, equations, jaxprs.

A `Jaxpr` is typed, closed (the arrays it captured are attached) and prints one equation per line. Everything derived
from it (its linearization, transpose, batched form, kernel) is cached on it and freed with it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np

from ..errors.source import Source
from ..runtime.config import program_key
from ..runtime.context import new_rlock
from ..runtime.module_getattr import slots
from ..runtime.portable import Unportable
from ..runtime.unusual import awaited
from .aval import Aval, aval_of
from .dtypes import dtype_name
from .primitive import Effect, Primitive
from .values import ArrayLike, Params

#: The most derived objects cached on one jaxpr. Beyond it all are dropped, and derived again when needed.
MOST_DERIVED = 256


class Var:
    """A variable: the output of exactly one equation, an input, or a captured constant."""

    __slots__ = ("aval",)

    def __init__(self, aval: Aval):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var:{self.aval}"


class Literal:
    """A number where a variable could be: a Python scalar (weak) or a NumPy scalar."""

    __slots__ = ("aval", "value")

    def __init__(self, value: ArrayLike):
        self.value = value
        self.aval = aval_of(value)

    @property
    def val(self) -> Any:
        """The number, under JAX's name."""
        return self.value

    def __repr__(self) -> str:
        return f"{self.value}:{self.aval}"


Atom = Var | Literal


class Eqn:
    """``outvars = primitive[params] invars``, with the user's line and its effects."""

    __slots__ = ("effects", "invars", "outvars", "params", "primitive", "source")

    def __init__(
        self,
        primitive: Primitive,
        invars: Sequence[Atom],
        outvars: Sequence[Var],
        params: Params,
        source: Source | None = None,
    ):
        self.primitive = primitive
        self.invars = tuple(invars)
        self.outvars = tuple(outvars)
        self.params = params
        self.effects: Effect = primitive.effects(**params)
        self.source = source

    def replace(
        self,
        *,
        primitive: Primitive | None = None,
        invars: Sequence[Atom] | None = None,
        outvars: Sequence[Var] | None = None,
        params: Params | None = None,
    ) -> Eqn:
        """A copy with these fields replaced; it keeps its source line."""
        return Eqn(
            self.primitive if primitive is None else primitive,
            self.invars if invars is None else invars,
            self.outvars if outvars is None else outvars,
            self.params if params is None else params,
            self.source,
        )

    def __repr__(self) -> str:
        return f"{self.primitive.name}{list(self.invars)} -> {list(self.outvars)}"


class Jaxpr(Unportable):
    """A pure function of arrays as a list of equations.

    Parameters
    ----------
    invars : sequence of Var
    eqns : sequence of Eqn
    outvars : sequence of Var or Literal
    constvars, consts : sequences of Var and of arrays
        The captured arrays (read-only copies) and the variables that name them.
    name : str
        The name of the function, for printing and for kernels.
    stats : object, optional
        Counters of the `jit` object that traced this jaxpr; programs derived from it count there too.
    """

    _instead = "Send the function instead, and trace it there"
    __slots__ = (
        "__weakref__",
        "_derived",
        "_lock",
        "consts",
        "constvars",
        "eqns",
        "invars",
        "name",
        "outvars",
        "stats",
    )

    def __init__(
        self,
        invars: Sequence[Var],
        eqns: Sequence[Eqn],
        outvars: Sequence[Atom],
        *,
        constvars: Sequence[Var] = (),
        consts: Sequence[Any] = (),
        name: str = "f",
        stats: Any = None,
    ):
        self.invars = tuple(invars)
        self.eqns = tuple(eqns)
        self.outvars = tuple(outvars)
        self.constvars = tuple(constvars)
        self.consts = tuple(consts)
        self.name = name
        self.stats = stats
        self._derived: dict[Hashable, Any] = {}
        self._lock = new_rlock()

    def replace(
        self,
        *,
        invars: Sequence[Var] | None = None,
        eqns: Sequence[Eqn] | None = None,
        outvars: Sequence[Atom] | None = None,
        constants: Sequence[tuple[Var, Any]] | None = None,
        name: str | None = None,
    ) -> Jaxpr:
        """A copy with these fields replaced; `constants` are pairs of a variable and its array.

        The copy shares the counters. It starts without derived objects.
        """
        constants = self.constants if constants is None else constants
        return Jaxpr(
            self.invars if invars is None else invars,
            self.eqns if eqns is None else eqns,
            self.outvars if outvars is None else outvars,
            constvars=[v for v, _ in constants],
            consts=[c for _, c in constants],
            name=self.name if name is None else name,
            stats=self.stats,
        )

    @property
    def constants(self) -> list[tuple[Var, Any]]:
        """The captured arrays with their variables."""
        return list(zip(self.constvars, self.consts))

    @property
    def jaxpr(self) -> Jaxpr:
        """This jaxpr: JAX separates a jaxpr from its constants, functrans does not."""
        return self

    @property
    def in_avals(self) -> list[Aval]:
        """The avals of the inputs."""
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[Aval]:
        """The avals of the outputs."""
        return [v.aval for v in self.outvars]

    @property
    def effects(self) -> Effect:
        """The union of the equations' effects."""
        effects = Effect.NONE
        for eqn in self.eqns:
            effects |= eqn.effects
        return effects

    def derive(self, key: Hashable, build: Callable[[], Any]) -> Any:
        """``build()``, computed once for each key and cached for the life of this jaxpr (thread-safe).

        Also once for each setting of the options that affect tracing or compilation (see `config`).
        """
        key = (program_key(), key)
        derived = self._derived.get(key)
        if derived is None:
            with awaited(self._lock):
                derived = self._derived.get(key)
                if derived is None:
                    derived = build()
                    if len(self._derived) >= MOST_DERIVED:  # one for each loop length or batch size
                        self._derived.clear()
                    self._derived[key] = derived
        return derived

    def knows(self, key: Hashable) -> bool:
        """Whether the object for a key has been derived under the options of now."""
        return (program_key(), key) in self._derived

    def forget(self) -> None:
        """Drop everything derived."""
        with self._lock:
            self._derived.clear()

    def pretty_print(self, *, source_info: bool = False) -> str:
        """The text of the jaxpr, one equation per line; with `source_info` the user's file and line after each."""
        return show(self, source=source_info)

    def __str__(self) -> str:
        return show(self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: the picture, and the text."""
        return str(slots.pictures.html_of(slots.pictures.Drawn(self)))


def subjaxprs(params: Params) -> Iterator[Jaxpr]:
    """The jaxprs among an equation's parameters.

    Examples
    --------
    >>> import functrans as ft
    >>> from functrans import extend
    >>> (eqn,) = ft.make_jaxpr(ft.jit(lambda x: x + 1.0))(0.0).eqns
    >>> len(list(extend.core.subjaxprs(eqn.params)))
    1
    """
    for value in params.values():
        if isinstance(value, Jaxpr):
            yield value
        elif isinstance(value, tuple):
            yield from (v for v in value if isinstance(v, Jaxpr))


def has_subjaxprs(params: Params) -> bool:
    """Whether an equation's parameters contain a jaxpr."""
    return any(True for _ in subjaxprs(params))


# --- printing: one equation per line, like mathematics ----------------------------------------------------------


def variable_name(i: int) -> str:
    """``a``, ``b``, ..., ``z``, ``ba``, ``bb``, ..."""
    letters = chr(ord("a") + i % 26)
    while i >= 26:
        i //= 26
        letters = chr(ord("a") + i % 26) + letters
    return letters


class JaxprPrinter:
    """Gives variables their names, in the order of the text, and writes equations."""

    def __init__(self, source: bool):
        self.source = source
        self.names: dict[Var, str] = {}
        self.counter = count()

    def atom(self, a: Atom) -> str:
        """The name of a variable, or a literal."""
        if hasattr(a, "value"):
            text = repr(a.value.item()) if isinstance(a.value, (np.generic, np.ndarray)) else repr(a.value)
            return text if a.aval.weak else f"{text}:{a.aval}"
        name = self.names.get(a)
        if name is None:
            name = self.names[a] = variable_name(next(self.counter))
        return name

    def binder(self, v: Var) -> str:
        """A variable with its type."""
        return f"{self.atom(v)}:{v.aval}"

    def param(self, value: Any, indent: str) -> str:
        """The value of a parameter."""
        if hasattr(value, "eqns"):
            return (
                "{\n" + "\n".join(JaxprPrinter(self.source).lines(value, indent + "  ")) + f"\n{indent}" + "}"
            )
        if isinstance(value, np.dtype):
            return dtype_name(value)
        if isinstance(value, tuple) and any(hasattr(v, "eqns") for v in value):
            return "(" + ", ".join(self.param(v, indent) for v in value) + ")"
        return str(value)

    def eqn(self, eqn: Eqn, indent: str) -> str:
        """The line of an equation."""
        outs = " ".join(map(self.binder, eqn.outvars))
        if eqn.primitive.show is not None:
            params = eqn.primitive.show(**eqn.params)
        else:
            params_given = {k: v for k, v in eqn.params.items() if v is not None}
            params = ", ".join(f"{k}={self.param(v, indent)}" for k, v in params_given.items())
        args = " ".join(map(self.atom, eqn.invars))
        head = f"{outs} = " if outs else ""
        line = f"{indent}{head}{eqn.primitive.name}{f'[{params}]' if params else ''} {args}".rstrip()
        return f"{line}  # {eqn.source}" if self.source and eqn.source is not None else line

    def lines(self, jaxpr: Jaxpr, indent: str) -> list[str]:
        """The lines of a program."""
        consts = " ".join(map(self.binder, jaxpr.constvars))
        invars = " ".join(map(self.binder, jaxpr.invars))
        head = f"{indent}lambda {consts}{' ; ' if consts else ''}{invars}."
        body = [self.eqn(e, indent + "  ") for e in jaxpr.eqns]
        outs = ", ".join(map(self.atom, jaxpr.outvars))
        return [head, *body, f"{indent}  return ({outs}{',' if len(jaxpr.outvars) == 1 else ''})"]


def show(jaxpr: Jaxpr, *, source: bool = False) -> str:
    """The text of a jaxpr.

    Parameters
    ----------
    jaxpr : Jaxpr
    source : bool
        Append the user's file, line and function to each equation.
    """
    return "\n".join(JaxprPrinter(source).lines(jaxpr, ""))
