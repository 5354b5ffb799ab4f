"""Write a program equation by equation."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from ..arrays.array import read_only_copy
from ..core import Atom, Eqn, FunctransError, Jaxpr, JaxprError, Literal, Primitive, Var, aval_of, user_source
from ..core.values import Param
from ..frontend.arguments import struct_aval, value_of
from ..passes.check import check_jaxpr
from ..passes.toolkit import drop_unused_constants, new_equation
from .names import primitive


class Builder:
    """Builds a program from equations.

    Parameters
    ----------
    *avals : Aval, ShapeDtypeStruct or array_like
        The types of the inputs; of an array, its type.
    name : str, keyword only
        The name of the program.

    Attributes
    ----------
    inputs : list of Var

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import ir
    >>> b = ir.Builder(np.ones(3), np.ones(3))
    >>> x, y = b.inputs
    >>> z = b.add("sin", b.add("mul", x, y))
    >>> print(b.build(z))
    lambda a:f64[3] b:f64[3].
      c:f64[3] = mul a b
      d:f64[3] = sin c
      return (d,)
    """

    def __init__(self, *avals: Any, name: str = "built"):
        self.name = name
        self.inputs = [
            Var(struct_aval(a, lambda i=i: f"Builder: the type of input {i}"))  # type: ignore[misc]
            for i, a in enumerate(avals)
        ]
        self._eqns: list[Eqn] = []
        #: By the ``id`` of the caller's array, which is held so that no other one gets it.
        self._constants: dict[int, tuple[Var, Any, Any]] = {}
        self._known: set[Atom] = set(self.inputs)

    def add(self, name: str | Primitive, /, *operands: Any, **params: Param) -> Any:
        """Append an equation.

        Parameters
        ----------
        name : str or Primitive
        *operands : Var, Literal, number or array
            Variables of this builder. A Python number gets the dtype of the first variable, if it is of its kind.
            Arrays become captured arrays of the program.
        **params

        Returns
        -------
        Var, or list of Var for a primitive with several results

        Raises
        ------
        FunctransError
            The error of the primitive's abstract rule, if it refuses the operands.
        JaxprError
            If an operand is a variable of another program, or the parameters are not those of the primitive.
        """
        prim = name if isinstance(name, Primitive) else primitive(name)
        dtype = next((x.aval.dtype for x in operands if isinstance(x, Var)), None)
        invars = [self._atom(x, f"operand {i} of {prim.name}", dtype) for i, x in enumerate(operands)]
        try:
            inspect.signature(prim.abstract).bind(*invars, **params)
            eqn = new_equation(prim, invars, params, user_source())
        except FunctransError:
            raise
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            types = ", ".join(str(a.aval) for a in invars)
            raise JaxprError(
                f"Builder.add: {prim.name} refuses operands {types or 'none'} with parameters {params}: {error}"
            ) from None
        self._eqns.append(eqn)
        self._known.update(eqn.outvars)
        return list(eqn.outvars) if prim.multiple_results else eqn.outvars[0]

    def build(self, *outs: Any) -> Jaxpr:
        """The program with these outputs: variables of this builder, numbers or arrays.

        Equations that no output needs are left out. More may be added afterwards, for another program.

        Raises
        ------
        JaxprError
            If an output is a variable of another program.
        """
        outvars = [self._atom(x, f"output {i}", None) for i, x in enumerate(outs)]
        constants = list(self._constants.values())
        jaxpr = Jaxpr(
            self.inputs,
            self._eqns,
            outvars,
            constvars=[v for v, _, _ in constants],
            consts=[c for _, c, _ in constants],
            name=self.name,
        )
        check_jaxpr(jaxpr, "building")
        return drop_unused_constants(jaxpr)

    def _atom(self, x: Any, what: str, dtype: np.dtype | None) -> Atom:
        if isinstance(x, Literal):
            return x
        if isinstance(x, Var):
            if x not in self._known:
                raise JaxprError(f"Builder: {what} is a variable of another program, of type {x.aval}")
            return x
        value = value_of(x, lambda: f"Builder: {what}")
        if isinstance(value, bool | int | float | complex):
            fits = dtype is not None and np.can_cast(type(value), dtype, "same_kind")
            return Literal(np.asarray(value, dtype)[()] if fits else value)
        if isinstance(value, np.generic):
            return Literal(value)
        known = self._constants.get(id(x))
        if known is None:
            value = read_only_copy(value)
            known = self._constants[id(x)] = (Var(aval_of(value)), value, x)
            self._known.add(known[0])
        return known[0]
