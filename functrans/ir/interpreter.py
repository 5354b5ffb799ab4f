"""Run a program one equation at a time, with methods for subclasses to override."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import numpy as fnp
from ..arrays.array import unwrap
from ..control.bodies.enclosed import Enclosed, enclosed, with_bodies
from ..control.cond import cond_p
from ..control.loops.scan_loops import head_of, is_counter
from ..control.scan import scan_p
from ..control.while_loop import while_p
from ..core import Aval, Eqn, Jaxpr, JaxprError, Var, aval_of, boundary
from ..core.evaluation import bind_equation, evaluate
from ..core.values import PyTree
from ..frontend.arguments import result, value_of
from ..passes.masks import split
from ..passes.toolkit import new_equation
from ..primitives.structure.linear import zeros
from ..primitives.tape import write_tape
from ..transforms.stage import stage
from .programs import check_jaxpr_type


class Interpreter:
    """Runs a program equation by equation; override `equation` to do something else with each.

    Parameters
    ----------
    jaxpr : Jaxpr

    Attributes
    ----------
    jaxpr : Jaxpr
    descend : bool
        Whether bodies of loops, branches and calls are run by this interpreter too, a loop as a Python loop. Otherwise
        each is one equation. Set it in the subclass.
    depth : int
        How many loops, branches and calls are around the current equation.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import ir, lax
    >>> class Printer(ir.Interpreter):
    ...     descend = True
    ...     def equation(self, eqn, values):
    ...         results = super().equation(eqn, values)
    ...         print("  " * self.depth + eqn.primitive.name, *results)
    ...         return results
    >>> program = ir.trace(lambda x: lax.fori_loop(0, 2, lambda i, c: c * 2.0, x) + 1.0, np.float64(3.0))
    >>> Printer(program).run(3.0)
      mul 6.0
      mul 12.0
    add 13.0
    [Array(13.)]
    """

    descend = False

    def __init__(self, jaxpr: Jaxpr):
        check_jaxpr_type(type(self).__name__, jaxpr)
        self.jaxpr = jaxpr
        self.depth = 0

    @boundary
    def run(self, *args: PyTree) -> list[Any]:
        """Run the program.

        Parameters
        ----------
        *args
            A value for each input: an array, a number, or whatever `equation` understands.

        Returns
        -------
        list
            The outputs, NumPy's arrays as `Array`.

        Raises
        ------
        JaxprError
            If the number of arguments is wrong.
        """
        expected = len(self.jaxpr.invars)
        if len(args) != expected:
            raise JaxprError(
                f"{type(self).__name__} of {self.jaxpr.name}: the program takes {expected} values, but "
                f"{len(args)} were given"
            )
        values = [_value(x) for x in args]
        return [result(x, {*map(id, values)}) for x in self._evaluate(self.jaxpr, values)]

    def equation(self, eqn: Eqn, values: list[Any]) -> list[Any]:
        """Compute one equation: by default, bind its primitive.

        Parameters
        ----------
        eqn : Eqn
        values : list
            The values of its operands: NumPy's arrays, numbers, or traced values.

        Returns
        -------
        list
            The values of its results.
        """
        return list(bind_equation(eqn, values))

    def _evaluate(self, jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
        return evaluate(jaxpr, values, self._visit)

    def _visit(self, eqn: Eqn, values: list[Any]) -> list[Any]:
        if self.descend:
            bodies = enclosed(eqn)
            if bodies:
                return self._inside(eqn, values, bodies)
        return self._computed(eqn, values)

    def _computed(self, eqn: Eqn, values: list[Any]) -> list[Any]:
        outs = self.equation(eqn, values)
        if not isinstance(outs, list | tuple) or len(outs) != len(eqn.outvars):
            got = f"{len(outs)} values" if isinstance(outs, list | tuple) else f"a {type(outs).__name__}"
            raise JaxprError(
                f"{type(self).__name__}.equation: {eqn.primitive.name} has {len(eqn.outvars)} results, but {got} came "
                "back. Return a list with one value for each",
                eqn.source,
            )
        return [_value(x) for x in outs]

    def _inside(self, eqn: Eqn, values: list[Any], bodies: Sequence[Enclosed]) -> list[Any]:
        self.depth += 1
        try:
            if eqn.primitive is scan_p:
                return self._scan(eqn, values)
            if eqn.primitive is while_p:
                return self._while(eqn, values)
            if eqn.primitive is cond_p:
                return self._evaluate(bodies[int(values[0])].jaxpr, values[1:])
            return self._evaluate(bodies[0].jaxpr, values)
        finally:
            self.depth -= 1

    def _scan(self, eqn: Eqn, values: Sequence[Any]) -> list[Any]:
        p = eqn.params
        jaxpr, length = p["jaxpr"], p["length"]
        head, rest = head_of(values, length)
        consts, carry, rows = split(rest, p["num_consts"], p["num_carry"])
        count = length if length is not None else max(int(head[0]), 0)
        out_rows: list[list[Any]] = []
        for i in reversed(range(count)) if p["reverse"] else range(count):
            here = [
                x + np.int64(i) if is_counter(x) else x.record(i) if length is None else _value(x[i])
                for x in rows
            ]
            outs = self._evaluate(jaxpr, [*consts, *carry, *here])
            carry = outs[: len(carry)]
            out_rows.append(outs[len(carry) :])
        if p["reverse"]:
            out_rows.reverse()
        avals = jaxpr.out_avals[len(carry) :]
        return [*carry, *_columns(out_rows, avals, length is None)]

    def _while(self, eqn: Eqn, values: Sequence[Any]) -> list[Any]:
        test, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
        test_consts, consts, carry = split(values, eqn.params["num_cond"], eqn.params["num_consts"])
        out_rows: list[list[Any]] = []
        while self._evaluate(test, [*test_consts, *carry])[0]:
            outs = self._evaluate(body, [*consts, *carry])
            carry = outs[: len(carry)]
            out_rows.append(outs[len(carry) :])
        return [
            *carry,
            np.int64(len(out_rows)),
            *_columns(out_rows, body.out_avals[len(carry) :], tapes=True),
        ]


def _value(x: Any) -> Any:
    """A value for a primitive; other objects unchanged, for interpreters that compute with something else."""
    return unwrap(x)


def _columns(rows: Sequence[Sequence[Any]], avals: Sequence[Aval], tapes: bool) -> list[Any]:
    columns = [[row[j] for row in rows] for j in range(len(avals))]
    if tapes:
        return [write_tape(a.strong(), column) for a, column in zip(avals, columns)]
    return [
        unwrap(fnp.stack(column)) if column else zeros(a.strong().with_shape((0, *a.shape)))
        for a, column in zip(avals, columns)
    ]


class Transformer(Interpreter):
    """An interpreter whose values are traced: what `equation` computes becomes a new program.

    It also goes through the bodies of calls, loops and branches, whose equations it replaces by such with the new
    bodies. New equations keep the line of the equation that `equation` was called with.

    Parameters
    ----------
    jaxpr : Jaxpr

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import ir
    >>> class InFloat32(ir.Transformer):
    ...     def equation(self, eqn, values):
    ...         if eqn.primitive is ir.primitive("exp"):
    ...             return [np.exp(values[0].astype("float32")).astype("float64")]
    ...         return super().equation(eqn, values)
    >>> print(InFloat32(ir.trace(lambda x: np.exp(x) + 1.0, np.ones(3))).transform())
    lambda a:f64[3].
      b:f32[3] = convert_element_type[dtype=float32, weak=False] a
      c:f32[3] = exp b
      d:f64[3] = convert_element_type[dtype=float64, weak=False] c
      e:f64[3] = add d 1.0
      return (e,)
    """

    descend = True
    _transforms = False

    @boundary
    def transform(self) -> Jaxpr:
        """The new program, with the same inputs.

        Raises
        ------
        JaxprError
            If a body returns other types than its loop carries, or than another branch.
        """
        self._transforms = True
        try:
            return self._body(self.jaxpr, self.jaxpr.in_avals)
        finally:
            self._transforms = False

    def _computed(self, eqn: Eqn, values: list[Any]) -> list[Any]:
        outs = super()._computed(eqn, values)
        what = f"a result of {type(self).__name__}.equation"
        return [value_of(x, lambda: what) for x in outs]

    def _inside(self, eqn: Eqn, values: list[Any], bodies: Sequence[Enclosed]) -> list[Any]:
        if not self._transforms:
            return super()._inside(eqn, values, bodies)
        self.depth += 1
        try:
            new = [self._body(b.jaxpr, a) for b, a in zip(bodies, _input_avals(eqn, values))]
        finally:
            self.depth -= 1
        _check_outputs(eqn, values, new)
        operands, params = with_bodies(eqn, values, new, lambda c: c)
        whole = new_equation(eqn.primitive, [Var(aval_of(x)) for x in operands], params, eqn.source)
        return self._computed(whole, operands)

    def _body(self, jaxpr: Jaxpr, avals: Sequence[Aval]) -> Jaxpr:
        return stage(lambda *values: self._evaluate(jaxpr, values), avals, jaxpr.name, jaxpr.stats)


def _input_avals(eqn: Eqn, values: Sequence[Any]) -> list[list[Aval]]:
    """The types of the inputs of each body, by those of the operands now."""
    avals = [aval_of(x) for x in values]
    if eqn.primitive is scan_p:
        p = eqn.params
        _, rest = head_of(avals, p["length"])
        split_at = p["num_consts"] + p["num_carry"]
        given, rows = [a.strong() for a in rest[:split_at]], rest[split_at:]
        own = p["jaxpr"].in_avals[split_at:]
        records = [
            b if is_counter(a) or p["length"] is None else a.with_shape(a.shape[1:])
            for a, b in zip(rows, own)
        ]
        return [[*given, *records]]
    if eqn.primitive is while_p:
        test_consts, consts, carry = split(avals, eqn.params["num_cond"], eqn.params["num_consts"])
        strong = [a.strong() for a in carry]
        return [[*test_consts, *strong], [*consts, *strong]]
    if eqn.primitive is cond_p:
        return [avals[1:]] * len(eqn.params["branches"])
    return [avals]


def _check_outputs(eqn: Eqn, values: Sequence[Any], bodies: Sequence[Jaxpr]) -> None:
    if eqn.primitive is scan_p:
        start = eqn.params["num_consts"] + (eqn.params["length"] is None)
        expected = [aval_of(x) for x in values[start : start + eqn.params["num_carry"]]]
        outs = bodies[0].out_avals
    elif eqn.primitive is while_p:
        expected = [aval_of(x) for x in values[eqn.params["num_cond"] + eqn.params["num_consts"] :]]
        outs = bodies[1].out_avals
    elif eqn.primitive is cond_p:
        expected, outs = bodies[0].out_avals, []
        for other in bodies[1:]:
            _compare(eqn, expected, other.out_avals, "the first branch returns {}, another one {}")
    else:
        return
    _compare(eqn, expected, outs, "the loop carries {}, but its new body returns {}")


def _compare(eqn: Eqn, expected: Sequence[Aval], outs: Sequence[Aval], text: str) -> None:
    for a, b in zip(expected, outs):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise JaxprError(
                f"transform: {eqn.primitive.name}: {text.format(a, b)}. Convert it back at the end of the body",
                eqn.source,
            )
