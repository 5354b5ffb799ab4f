"""What holds of each program: checks of values and derivatives by independent routes, at many points.

A check takes a program and the seeds of points, and compares. Oracles are NumPy with Python's loops, differences of
that, and derivatives taken operation by operation of Python's loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import derivative_checks, lane_checks, value_checks
from .choices import Choices, drawn_by
from .derivative_checks import check_stack
from .drawing import Program, draw_program
from .settings import Setting, draw_setting, under
from .stacks import draw_stack

#: By name: the check, and how many points it is given for each one that a check of values is given.
CHECKS: dict[str, tuple[Callable[[Program, Sequence[int]], None], float]] = {
    "values": (value_checks.check_values, 1.0),
    "layouts": (value_checks.check_layouts, 0.5),
    "special": (value_checks.check_special, 0.5),
    "memory": (value_checks.check_memory, 0.5),
    "threads": (value_checks.check_threads, 0.25),
    "forward": (derivative_checks.check_forward, 0.2),
    "reverse": (derivative_checks.check_reverse, 0.2),
    "second": (derivative_checks.check_second, 0.1),
    "modes": (derivative_checks.check_modes, 0.5),
    "slope": (derivative_checks.check_slope, 0.05),
    "budgets": (derivative_checks.check_budgets, 0.02),
    "lanes": (lane_checks.check_lanes, 0.25),
    "lanes reverse": (lane_checks.check_lanes_reverse, 0.1),
    "lanes second": (lane_checks.check_lanes_second, 0.05),
}


class Case:
    """A program, a stack of transformations and a setting."""

    def __init__(self, choose: Choices, **how: Any):
        self.program = draw_program(choose, **how)
        self.stack = draw_stack(choose)
        self.setting = draw_setting(choose)

    def __repr__(self) -> str:
        return f"{self.program}, stack {self.stack}, {self.setting}"

    def check(self, name: str, points: int = 2, program: Program | None = None) -> None:
        """Run one check, by its name or ``"stack"``, at as many points as it takes."""
        program = self.program if program is None else program
        with under(self.setting if name != "threads" else Setting()):
            if name == "stack":
                check_stack(program, range(max(1, points // 20)), self.stack)
            else:
                check, share = CHECKS[name]
                check(program, range(max(1, round(points * share))))


cases = drawn_by(Case)
