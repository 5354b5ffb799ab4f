"""What the domains of special functions have in common."""

from dataclasses import dataclass

from functrans.testing import Case, Interval, Numbers

POSITIVE = Interval(0.2, 3.0)
UNIT = Interval(-0.9, 0.9)
SHARE = Interval(0.05, 0.95)
ABOVE_ONE = Interval(1.2, 4.0)


@dataclass(frozen=True)
class Held(Numbers):
    """Numbers that no derivative is asked for: there is none in them."""

    fixed = True


def cases_of(*operands, **params):
    """Operands of equal shapes, 0-d, broadcast and empty, with these parameters."""
    shapes = [[(3, 4)] * 3, [()] * 3, [(3, 1), (4,), (1, 4)], [(0, 3), (3,), ()]]
    return tuple(
        Case(tuple(kind(s, interval) for s, (kind, interval) in zip(row, operands)), params) for row in shapes
    )
