"""Which conversions to a number the user's own code asks for, by the bytecode of the calling frame."""

# The bytecode of odd code matters here:
# ruff: noqa: C416, RUF015, UP018

import builtins
import functools
import math
import statistics
import sys

import pytest

import functrans as ft
from functrans.runtime.explicit_float import asker, is_explicit, is_users

number = float


class Asked:
    """Records what it is asked for."""

    def __init__(self):
        self.explicit = []

    def __float__(self):
        self.explicit.append(is_explicit(sys._getframe(1)))
        return 2.0

    def __int__(self):
        self.explicit.append(is_explicit(sys._getframe(1)))
        return 2

    def __complex__(self):
        self.explicit.append(is_explicit(sys._getframe(1)))
        return 2j

    def __add__(self, other):
        return self


class Subclass(float):
    pass


class Holder:
    number = float


def local(x):
    convert = float
    return convert(x)


def captured(x):
    convert = int
    return (lambda: convert(x))()


def in_handler(x):
    for v in [x]:
        try:
            raise ValueError
        except ValueError:
            out = float(v)
    return out


def in_class(x):
    class A:
        v = float(x)

    return A.v


def by_keyword(x):
    return complex(real=x)


def shadowed(x):
    float = math.sin
    return float(x)


EXPLICIT = {
    "float": lambda x: float(x),
    "int": lambda x: int(x),
    "complex": lambda x: complex(x),
    "two parts": lambda x: complex(x, 1.0),
    "keyword": by_keyword,
    "of builtins": lambda x: builtins.float(x),
    "alias": lambda x: number(x),
    "local alias": local,
    "captured alias": captured,
    "of an expression": lambda x: float(x + 1 + len([v for v in [1, 2]]) + (3 if x else 4)),
    "of a choice": lambda x: float(x if x else 0),
    "of and": lambda x: float(x and x),
    "of a comprehension": lambda x: float([v for v in [x, x] if v][0]),
    "of a generator": lambda x: float(next(v for v in (x,))),
    "of a call": lambda x: float(max(int(x), 2)),
    "of a walrus": lambda x: float(y := x),  # noqa: F841
    "in a comprehension": lambda x: [float(v) for v in [x]],
    "in a generator": lambda x: list(float(v) for v in [x]),  # noqa: C400
    "in a condition": lambda x: 1 if float(x) > 1 else 0,
    "in a handler": in_handler,
    "in a class": in_class,
    "before math": lambda x: math.sin(float(x)),
    "formatted": lambda x: "%f" % x,  # noqa: UP031
    "formatted two": lambda x: "%f %d" % (x, x),  # noqa: UP031
}
HIDDEN = {
    "math": lambda x: math.sin(x),
    "another float": shadowed,
    "map": lambda x: sum(map(float, [x])),
    "loop over a map": lambda x: [v for v in map(float, [x])],
    "map of math": lambda x: list(map(math.exp, [x])),
    "partial": lambda x: functools.partial(float)(x),
    "dictionary": lambda x: {"f": float}["f"](x),
    "list": lambda x: [float][0](x),
    "tuple": lambda x: (float, math.sin)[0](x),
    "getattr": lambda x: getattr(builtins, "float")(x),  # noqa: B009
    "attribute": lambda x: Holder.number(x),
    "returned": lambda x: (lambda: float)()(x),
    "subclass": lambda x: Subclass(x),
    "stars": lambda x: float(*[x]),
    "new": lambda x: float.__new__(float, x),
    "key": lambda x: sorted([x], key=float),
    "choice of math": lambda x: (math.sin if x else float)(x),
    "choice that is math": lambda x: (float if not x else math.sin)(x),
    "inside of float": lambda x: float(math.exp(x) + 1),
    "beside float": lambda x: float(1.0) + math.exp(x),
    "fsum": lambda x: math.fsum([x, x]),
}


@pytest.mark.parametrize("name", EXPLICIT)
def test_explicit(name):
    for _ in range(20):  # the interpreter specialises what runs often
        x = Asked()
        EXPLICIT[name](x)
        assert x.explicit
        assert all(x.explicit)


@pytest.mark.parametrize("name", HIDDEN)
def test_hidden(name):
    for _ in range(20):
        x = Asked()
        HIDDEN[name](x)
        assert x.explicit
        assert not any(x.explicit)


@pytest.mark.parametrize(
    ("text", "explicit"),
    [
        ("float(x)", True),
        ("[float(v) for v in [x]]", True),
        ("y = [float(x) + 1]\nfor i in range(3):\n    y = float(x)", True),
        ("class A:\n    v = float(x)\n    w = [float(u) for u in [x]]", True),
        ("def f(x):\n    return float(x)\nf(x)", True),
        ("math.sin(x)", False),
        ("f = math.exp\nf(x)", False),
        ("float = math.exp\nfloat(x)", False),
        ("def f(x):\n    return math.exp(x)\nf(x)", False),
    ],
)
def test_without_source(text, explicit):
    x = Asked()
    exec(text, {"x": x, "math": math})
    assert x.explicit
    assert set(x.explicit) == {explicit}


def test_many_instructions_before():
    """Arguments of instructions above 255 are written in two parts."""
    names = [f"v{i}" for i in range(300)]
    text = "\n".join(
        [f"{n} = 1" for n in names] + ["float(x)", f"float(x + {' + '.join(names)})", "m.sin(x)"]
    )
    x = Asked()
    exec(text, {"x": x, "m": math})
    assert x.explicit == [True, True, False]


def test_libraries_are_not_the_user():
    assert is_users(test_libraries_are_not_the_user.__code__)
    assert is_users(compile("1", "<stdin>", "exec"))
    assert not is_users(functools.wraps.__code__)
    assert not is_users(pytest.approx.__code__)
    assert not is_users(is_users.__code__)


def test_the_caller_has_a_name():
    def name_of(use):
        class Named:
            def __float__(self):
                names.append(asker(sys._getframe(1))[0])
                return 1.0

        names = []
        use(Named())
        return names[0]

    assert name_of(lambda x: math.sin(x)) == "math.sin"
    assert name_of(lambda x: sum(map(float, [x]))) == "sum"
    assert name_of(lambda x: statistics.fmean([x])) == "statistics.fmean"
    assert name_of(lambda x: {"f": math.sin}["f"](x)) == ""


def test_methods_called_by_name():
    """Before Python 3.13 the frame that calls one stands in the call's inline cache, which is not an instruction."""
    with pytest.raises(ft.errors.TracerScalarConversionError, match="derivative would be lost"):
        ft.grad(lambda t: t.__float__() * 2)(1.0)
    with pytest.raises(ft.errors.TracerScalarConversionError, match="unknown while tracing"):
        ft.jit(lambda t: t.__float__() * 2)(1.0)
