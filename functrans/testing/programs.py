"""`programs`: random functions made of operations, to try a rule in company and transformations in stacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from .. import numpy as fnp
from ..errors import ArgumentValueError
from ..frontend.arguments import name_of
from ..frontend.checked import checked
from ..runtime.records import NamedTuple, dataclass
from .strategies import needed


class _Step(NamedTuple):
    """Text with a place for each operand, and the function of a namespace and operands."""

    text: str
    run: Callable[..., Any]
    arity: int = 1


#: Smooth, and with values of a size near that of the operands: derivatives of long programs stay within bounds.
SMOOTH: tuple[_Step, ...] = (
    _Step("np.sin({})", lambda m, x: m.sin(x)),
    _Step("np.tanh({})", lambda m, x: m.tanh(x)),
    _Step("{} + {}", lambda m, x, y: x + y, 2),
    _Step("{} * np.cos({})", lambda m, x, y: x * m.cos(y), 2),
    _Step("0.5 * {} * {}", lambda m, x, y: 0.5 * x * y, 2),
    _Step("{} / (1.0 + {} ** 2)", lambda m, x, y: x / (1.0 + y**2), 2),
    _Step("np.exp(-{} ** 2)", lambda m, x: m.exp(-(x**2))),
    _Step("np.log1p({} ** 2)", lambda m, x: m.log1p(x**2)),
    _Step("np.sqrt(0.5 + {} ** 2)", lambda m, x: m.sqrt(0.5 + x**2)),
    _Step("np.arctan2({}, 2.0 + {} ** 2)", lambda m, x, y: m.arctan2(x, 2.0 + y**2), 2),
    _Step("np.tanh(np.sum({}))", lambda m, x: m.tanh(m.sum(x))),
    _Step("{} - 0.1 * np.sum({})", lambda m, x, y: x - 0.1 * m.sum(y), 2),
)
#: With kinks.
KINKED: tuple[_Step, ...] = (
    _Step("np.abs({})", lambda m, x: m.abs(x)),
    _Step("np.maximum({}, {})", lambda m, x, y: m.maximum(x, y), 2),
    _Step("np.where({0} > {1}, {0}, 0.5 * {1})", lambda m, x, y: m.where(x > y, x, 0.5 * y), 2),
)


@dataclass(frozen=True)
class RandomProgram:
    """A function of real arrays that broadcast together, drawn by `programs`; it prints as Python.

    Attributes
    ----------
    arity : int
        How many arrays it takes.
    steps : tuple of (operation, operands)
        Each makes a value of those before it: first the arguments, then what earlier steps made.
    outputs : tuple of int
        The values that it returns.
    """

    arity: int
    steps: tuple[tuple[_Step, tuple[int, ...]], ...]
    outputs: tuple[int, ...]
    __name__: str = field(default="program", init=False, repr=False)

    def __call__(self, *xs: Any) -> Any:
        """The outputs, by functrans: an array, or a tuple of them."""
        return self._run(fnp, [fnp.asarray(x) for x in xs])

    def reference(self, *xs: Any) -> Any:
        """The outputs, by NumPy; only without operations of your own that need functrans."""
        return self._run(np, [np.asarray(x) for x in xs])

    def _run(self, module: Any, values: list[Any]) -> Any:
        if len(values) != self.arity:
            raise ArgumentValueError(f"the program takes {self.arity} arrays, got {len(values)}")
        for operation, operands in self.steps:
            values.append(operation.run(module, *[values[i] for i in operands]))
        outs = tuple([values[i] for i in self.outputs])
        return outs if len(outs) > 1 else outs[0]

    def __repr__(self) -> str:
        names = [f"x{i}" for i in range(self.arity)]
        lines = [f"def program({', '.join(names)}):"]
        for operation, operands in self.steps:
            names.append(f"x{len(names)}")
            lines.append(f"    {names[-1]} = {operation.text.format(*[names[i] for i in operands])}")
        return "\n".join([*lines, f"    return {', '.join([names[i] for i in self.outputs])}"])


@checked
def programs(
    arity: int = 2,
    *,
    using: Mapping[Callable[..., Any], int] | None = None,
    kinks: bool = False,
    max_steps: int = 6,
) -> Any:
    """A strategy for programs: functions of real arrays, made of a few operations.

    Parameters
    ----------
    arity : int
        How many arrays they take, which must broadcast together.
    using : mapping from callable to int, optional
        Functions of your own with the number of their operands. Each program applies one of them at least once, to
        results of others, and others to its result.
    kinks : bool
        Whether `abs`, `maximum` and `where` are among the operations.
    max_steps : int
        The largest number of operations.

    Returns
    -------
    hypothesis.strategies.SearchStrategy
        Of callables with the attributes `arity`, `steps`, `outputs`, and `reference`, which is the same on NumPy.
        They shrink to fewer operations.

    Raises
    ------
    ImportError
        If Hypothesis is not installed.
    ArgumentValueError
        If `arity` or `max_steps` is not positive.

    Examples
    --------
    >>> from hypothesis import given, settings
    >>> import numpy as np
    >>> from functrans.testing import check, programs
    >>> @settings(max_examples=3, deadline=None, database=None)
    ... @given(programs(2))
    ... def test_programs(f):
    ...     np.testing.assert_allclose(f(0.5, [0.25, 2.0]), f.reference(0.5, [0.25, 2.0]), rtol=1e-12)
    """
    if arity < 1 or max_steps < 1:
        raise ArgumentValueError(f"programs: arity={arity}, max_steps={max_steps}: both must be at least 1")
    st = needed("strategies")
    own = [
        _Step(f"{name_of(f)}({', '.join(['{}'] * count)})", _ignoring(f), count)
        for f, count in (using or {}).items()
    ]
    known = [*SMOOTH, *(KINKED if kinks else ()), *own]

    @st.composite
    def strategy(draw: Callable[[Any], Any]) -> RandomProgram:
        count = draw(st.integers(1, max_steps))
        place = draw(st.integers(0, count - 1)) if own else -1
        steps = []
        for k in range(count):
            operation = draw(st.sampled_from(own if k == place else known))
            # The last values first: what a step makes is mostly used.
            late = st.integers(0, arity + k - 1).map(lambda i, k=k: arity + k - 1 - i)
            steps.append((operation, tuple(draw(late) for _ in range(operation.arity))))
        outs = {arity + count - 1, *([arity + place] if own else [])}
        return RandomProgram(arity, tuple(steps), tuple(sorted(outs)))

    return strategy()


def _ignoring(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the user's as one that is told the namespace, too."""
    return lambda module, *xs: f(*xs)
