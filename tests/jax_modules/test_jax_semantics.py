"""`config.jax_semantics`: dtypes as JAX has them, from a table that JAX itself wrote, and what else it changes."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import config, errors, lax

sys.path.insert(0, str(Path(__file__).parent))

from record_promotion import BINARY, KINDS, UNARY, operand, outcome

TABLE = json.loads(Path(__file__).with_name("promotion.json").read_text())
FORMS = {"eager": lambda f: f, "traced": lambda f: lambda *args: ft.eval_shape(lambda: f(*args))}
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture(params=["32", "64"])
def bits(request):
    with config.patch(jax_semantics=True, enable_x64=request.param == "64"):
        yield request.param


@pytest.fixture
def jaxs():
    with config.patch(jax_semantics=True):
        yield


def differs_knowingly(name, *kinds):
    """Complex numbers have no angle here; a boolean to the power 2 has the integer's dtype."""
    if name == "arctan2":
        return any("complex" in kind or kind == "2j" for kind in kinds)
    return name == "power" and kinds[0] in ("bool", "True") and kinds[1] == "2"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BINARY)
def test_all_pairs_of_dtypes_and_numbers_give_jaxs_dtypes(bits, name, form):
    pytest.importorskip("ml_dtypes")
    f = FORMS[form](getattr(fnp, name))
    wrong = {}
    for a, line in zip(KINDS, TABLE[bits][name], strict=True):
        for b, recorded in zip(KINDS, line.split(), strict=True):
            found = outcome(f, operand(fnp, a), operand(fnp, b))
            if found != recorded and not differs_knowingly(name, a, b):
                wrong[a, b] = recorded, found
    assert wrong == {}


@pytest.mark.parametrize("form", FORMS)
def test_functions_of_one_operand_give_jaxs_dtypes(bits, form):
    pytest.importorskip("ml_dtypes")
    for name in UNARY:
        f = FORMS[form](getattr(fnp, name))
        assert [outcome(f, operand(fnp, a)) for a in KINDS] == TABLE[bits][name][0].split(), name


def test_nothing_has_64_bits(jaxs):
    x = np.arange(3.0)
    assert fnp.asarray(x).dtype == fnp.ones(2).dtype == fnp.zeros(2, float).dtype == np.float32
    assert fnp.arange(3).dtype == fnp.argsort(x).dtype == fnp.full(2, 1).dtype == np.int32
    assert fnp.asarray(np.uint64(1)).dtype == np.uint32
    assert (
        ft.jit(lambda y: y)(x).dtype == ft.jit(fnp.argmax)(x).dtype.type(0).astype("f4").dtype == np.float32
    )
    assert ft.grad(lambda y: (y**3).sum())(x).dtype == ft.vmap(fnp.sin)(x).dtype == np.float32
    assert fnp.float64(1).dtype == fnp.asarray([1, 2.5]).dtype == np.float32
    assert lax.scan(lambda c, y: (c + y, c), 0.0, x)[1].dtype == np.float32
    assert ft.jit(lambda n: fnp.mean(n))(np.arange(3)).dtype == np.float32
    assert fnp.fft.fft(x).dtype == np.complex64
    assert ft.random.bits(ft.random.key(0)).dtype == np.uint32


def test_a_compiled_function_converts_its_arguments_at_each_call(jaxs):
    f = ft.jit(lambda x: 2.0 * x)
    for k in range(4):
        x = np.full(3, 1.0 + k)
        np.testing.assert_array_equal(f(x), 2 * x)
        np.testing.assert_array_equal(f(x.astype("f4")), 2 * x)
        assert f(1.0 + k) == 2.0 + 2 * k


def test_the_same_function_outside_keeps_its_64_bits():
    f = ft.jit(fnp.sin)
    x = np.linspace(0, 1, 5)
    with config.patch(jax_semantics=True):
        assert f(x).dtype == np.float32
    assert f(x).dtype == np.float64
    np.testing.assert_allclose(f(x), np.sin(x), rtol=1e-15)
    with config.patch(jax_semantics=True, enable_x64=True):
        assert f(x).dtype == np.float64


def test_numbers_stay_weak(jaxs):
    half = fnp.ones(2, "float16")
    chosen = fnp.where(fnp.ones(()) > 0, 2.0, 1), lax.select(True, 2.0, 1.0), fnp.clip(2.0, 0, 3)
    density = ft.jit(ft.scipy.stats.norm.logpdf)(0.5), ft.scipy.stats.norm.logpdf(0.5, 0.0, 2.0)
    for number in (fnp.sin(1.0), fnp.asarray(2.0), ft.jit(lambda x: 2 * x)(1.0), *chosen, *density):
        assert number.weak_type
        assert number.dtype == np.float32
        assert (half * number).dtype == np.float16
    one = fnp.float32(1)
    for number in (fnp.where(True, one, 1.0), fnp.clip(one, 0.0, 2.0), ft.scipy.stats.norm.cdf(0.5, one)):
        assert not number.weak_type
    assert fnp.array([one, 2.0]).dtype == np.float32
    assert ft.jit(lambda x: fnp.array([x, 1.0]))(np.float16(2)).dtype == np.float16


def test_random_numbers_are_jaxs_in_single_precision(jaxs):
    # As JAX 0.10.2 prints them.
    key = ft.random.key(0)
    assert str(ft.random.normal(key)) == "1.6226422"
    assert ft.random.uniform(key, (3,)).tolist() == np.float32([0.947667, 0.9785799, 0.33229148]).tolist()
    assert ft.random.randint(key, (3,), 0, 10).tolist() == [9, 0, 2]


def test_integers_divided_by_zero(jaxs):
    # As JAX 0.10.2 prints them: the quotient rounded towards 0 is -1 (all bits), its floor one less.
    for form in (lambda f: f, ft.jit):
        floored, divided = form(fnp.floor_divide), form(lax.div)
        x, zero = fnp.array([5, -5, 0]), fnp.array([0, 0, 0])
        assert floored(x, zero).tolist() == [-2, -2, -1]
        assert divided(x, zero).tolist() == [-1, -1, -1]
        assert floored(fnp.uint8(5), fnp.uint8(0)) == divided(fnp.uint8(5), fnp.uint8(0)) == 255
        assert floored(x, fnp.array([2, 2, 2])).tolist() == [2, -3, 0]


def test_indices_clamp_also_outside_of_jit_and_iteration_ends(jaxs):
    x = fnp.arange(3)
    assert x[7] == x[-1] == ft.jit(lambda x: x[7])(x) == 2
    assert x[-9] == 0
    assert list(x) == [0, 1, 2]
    assert list(reversed(x)) == [2, 1, 0]
    with pytest.raises(TypeError, match="0-d"):
        iter(fnp.float32(1))


def test_singular_matrices_give_nan(jaxs):
    assert np.isnan(fnp.linalg.cholesky(-fnp.eye(2))).any()


def test_the_switch_sets_other_options_which_may_be_set_otherwise():
    with config.patch(jax_semantics=True):
        assert (config.enable_x64, config.index_errors, config.linalg_errors) == (False, "clamp", "nan")
        assert config.read("jax_numpy_dtype_promotion") == "standard"
        with config.patch(index_errors="raise"), pytest.raises(IndexError):
            fnp.arange(3)[7]
    with config.patch(index_errors="raise", jax_semantics=True, enable_x64=True):
        assert (config.enable_x64, config.index_errors) == (True, "raise")
    with pytest.raises(errors.ConfigError, match="jax_semantics"):
        config.enable_x64 = False
    with pytest.raises(errors.ConfigError, match="jax_semantics"):
        ft.enable_x64(False)


def test_errors_of_shapes_and_arguments_are_of_both_kinds():
    for kind in (TypeError, ValueError):
        with pytest.raises(kind):
            fnp.add(fnp.ones(2), fnp.ones(3))
        with pytest.raises(kind):
            ft.grad(lambda x: x, argnums=2)(1.0)
        with pytest.raises(kind):
            fnp.sin("a")


def test_weak_numbers_stay_weak_after_the_switch():
    """Once it has been on, operations look at options that they did not look at before."""
    with config.patch(jax_semantics=True):
        pass
    x = np.ones(2, np.int8)
    assert ft.jit(lambda n: (n + 1) * x)(2).dtype == np.int8
    assert str(ft.make_jaxpr(lambda n: n + 1)(2)).splitlines()[1].strip() == "b:i64[]* = add a 1"


def test_laws_hold_of_numbers_where_nothing_has_64_bits(jaxs):
    """Finite differences of a Python number are in single precision."""
    ft.test_util.check_grads(lambda x, y: fnp.sin(x) * y, (0.5, 1.5), order=1)
    ft.testing.vjp_is_adjoint(lambda x: fnp.sin(x), np.linspace(0, 1, 3), rng=0)
