"""What an argument is replaced by. Each is made anew for each call."""

from __future__ import annotations

import datetime
import fractions
from collections.abc import Callable
from typing import Any

import numpy as np


class Plain:
    """An object without any protocol."""

    def __repr__(self):
        return "<Plain>"


class Failing:
    """An object that promises to be an array, and is none."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array after all")

    def __repr__(self):
        return "<Failing>"


def function(*args):
    """The user's own function, that returns nothing."""
    return


VALUES: dict[str, Callable[[], Any]] = {
    # no numbers
    "None": lambda: None,
    "'a'": lambda: "a",
    "'0'": lambda: "0",
    "b'a'": lambda: b"a",
    "object": Plain,
    "Ellipsis": lambda: ...,
    "slice": lambda: slice(1),
    "['a','b']": lambda: ["a", "b"],
    "{}": dict,
    "{'a':1}": lambda: {"a": 1},
    "{1}": lambda: {1},
    "function": lambda: function,
    "class": lambda: int,
    "failing": Failing,
    "date": lambda: datetime.date(2020, 1, 1),
    # scalars
    "True": lambda: True,
    "np.True_": lambda: np.True_,
    "-1": lambda: -1,
    "0": lambda: 0,
    "7": lambda: 7,
    "np.int64(1)": lambda: np.int64(1),
    "np.uint8(2)": lambda: np.uint8(2),
    "2**40": lambda: 2**40,
    "2**70": lambda: 2**70,
    "-2**62": lambda: -(2**62),
    "-2**70": lambda: -(2**70),
    "1.5": lambda: 1.5,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "1j": lambda: 1j,
    "Fraction": lambda: fractions.Fraction(1, 2),
    "longdouble": lambda: np.longdouble(1.5),
    "datetime64": lambda: np.datetime64("2020-01-01"),
    # sequences
    "()": tuple,
    "[]": list,
    "(0,0)": lambda: (0, 0),
    "(0,1)": lambda: (0, 1),
    "(1.5,2)": lambda: (1.5, 2),
    "(5,-9)": lambda: (5, -9),
    "(None,)": lambda: (None,),
    "((0,1),(2,))": lambda: ((0, 1), (2,)),
    "[[1.0],[2.0,3.0]]": lambda: [[1.0], [2.0, 3.0]],
    "[2**70]": lambda: [2**70],
    "range(3)": lambda: range(3),
    "iterator": lambda: iter([1, 2, 3]),
    # arrays
    "0-d": lambda: np.array(2.0),
    "0-d int": lambda: np.array(1),
    "empty": lambda: np.zeros(0),
    "(2,0,3)": lambda: np.zeros((2, 0, 3)),
    "(4,)": lambda: np.arange(4.0),
    "int(3,)": lambda: np.arange(3),
    "bool(2,)": lambda: np.array([True, False]),
    "(2,3,2)": lambda: np.arange(12.0).reshape(2, 3, 2),
    "(1,)*40": lambda: np.ones((1,) * 40),
    "nans": lambda: np.full(3, np.nan),
    "complex": lambda: np.array([1j, 2.0]),
    "longdouble array": lambda: np.ones(3, np.longdouble),
    "objects": lambda: np.array([1, None], dtype=object),
    "strings": lambda: np.array(["a", "b"]),
    "dates": lambda: np.array(["2020-01-01"], dtype="M8[D]"),
    "structured": lambda: np.zeros(2, dtype=[("a", float), ("b", int)]),
    "masked": lambda: np.ma.array([1.0, 2.0], mask=[True, False]),
}
#: Those that NumPy holds in arrays of dtypes that functrans does not have: it refuses them always.
FOREIGN = frozenset(
    (
        *(
            "'a'",
            "'0'",
            "b'a'",
            "object",
            "Ellipsis",
            "slice",
            "['a','b']",
            "{}",
            "{'a':1}",
            "{1}",
            "function",
        ),
        *(
            "class",
            "failing",
            "date",
            "None",
            "(None,)",
            "2**70",
            "-2**70",
            "[2**70]",
            "Fraction",
            "longdouble",
        ),
        *(
            "datetime64",
            "iterator",
            "longdouble array",
            "objects",
            "strings",
            "dates",
            "structured",
            "masked",
        ),
    )
)
