"""What an error advises fits what the user did."""

import dataclasses

import numpy as np
import pytest

import functrans as ft
from functrans import errors, lax


@dataclasses.dataclass
class Named:
    w: float
    name: str


ft.tree_util.register_dataclass(Named)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: ft.jit(lambda n: list(range(n)))(3), errors.TracerIntegerConversionError, "lax.fori_loop(0, n"),
        (lambda: ft.jit(lambda x: 1.0 if x > 0 else 2.0)(3.0), errors.TracerBoolConversionError, "lax.cond(condition"),
        (lambda: ft.jit(lambda x: x.item())(3.0), errors.TracerScalarConversionError, "x.item() of a traced value"),
        (lambda: ft.jit(lambda x: x.tolist())(3.0), errors.TracerScalarConversionError, "x.tolist() of a traced value"),
        (lambda: ft.jit(lambda x: float(x))(3.0), errors.TracerScalarConversionError, "float() of a traced value"),
        (lambda: ft.jit(lambda x: "a")(3.0), errors.ArgumentError, "keep what is no array outside of it"),
        (lambda: ft.grad(lambda x: None)(3.0), errors.GradientError, "Is a `return` missing?"),
        (lambda: ft.value_and_grad(lambda x: None)(3.0), errors.GradientError, "Is a `return` missing?"),
        (lambda: ft.grad(lambda x: (x, 1))(3.0), errors.GradientError, "pass has_aux=True"),
        (lambda: ft.jit(lambda x: x)(2**70), errors.IntegerRangeError, "does not fit into 64 bits"),
        (lambda: ft.jit(lambda x: x)({"a": [1, -(2**70)]}), errors.IntegerRangeError, "does not fit into 64 bits"),
        (lambda: lax.cond(True, lambda x: x, lambda x: x), errors.ArgumentError, "missing 1 required"),
        (lambda: ft.jit(lambda d: d.w)(Named(1.0, "a")), errors.ArgumentError, "meta_fields=[...]"),
        (lambda: ft.jit(lambda d: d["w"])({"w": "a"}), errors.ArgumentError, "make the argument static"),
    ],
)  # fmt: skip
def test_advice(call, error, says):
    with pytest.raises(error) as caught:
        call()
    assert says in str(caught.value)
    assert "<object object" not in str(caught.value)


def test_a_number_that_is_too_large_is_refused_by_each_call():
    f = ft.jit(lambda x: x + 1)
    for _ in range(2):
        assert f(1) == 2
        with pytest.raises(OverflowError, match="Python integer"):
            f(2**70)
    np.testing.assert_array_equal(f(np.ones(2)), [2.0, 2.0])
