"""Typical mistakes, each beside what a message must say so that its reader knows what to write instead."""

import subprocess
import sys
import textwrap
from pathlib import Path

import numba
import numpy as np
import pandas
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.special
import scipy.stats

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.runtime.module_getattr import PUBLIC

X = np.arange(3.0)
NAMES = {
    "np": np, "ft": ft, "fnp": fnp, "lax": lax, "x": X, "numba": numba, "pandas": pandas, "scipy": scipy,
    "jit": ft.jit, "grad": ft.grad, "vmap": ft.vmap,
}  # fmt: skip

#: Code, then words of the message.
MISTAKES = [
    # what is not known while tracing
    ("jit(lambda n: [i for i in range(n)])(3)", "argument 0 ('n')", "lax.fori_loop", "static"),
    ("jit(lambda a, b: float(b * 2))(1.0, 2.0)", "float()", "argument 1 ('b')", "static"),
    ("jit(lambda a, b: bool(a['k'] > 0))({'k': 1.0}, 2.0)", "argument 0 ('a')['k']", "lax.cond", "where"),
    ("jit(lambda a: 1 if a > 0 else 2)(1.0)", "argument 0 ('a')", "lax.cond", "lax.while_loop"),
    ("jit(lambda a: max(a[0], a[1]))(x)", "functrans.numpy.maximum(a, b) instead of Python's max"),
    ("jit(lambda a: min(a[0], a[1]))(x)", "functrans.numpy.minimum(a, b)"),
    ("jit(lambda a: sorted([a[0], a[1]]))(x)", "functrans.numpy.sort(x)"),
    ("jit(lambda a: all([a[0] > 0, a[1] > 0]))(x)", "functrans.numpy.all(x)"),
    ("jit(lambda a: a.item())(1.0)", "x.item()", "static"),
    ("jit(lambda a: a[a > 1])(x)", "mask", "where", "nonzero(mask, size=n)"),
    ("jit(fnp.nonzero)(x)", "size="),
    ("jit(lambda a: fnp.unique(a))(x)", "size="),
    ("jit(lambda a, n: a.reshape(n))(x, 3)", "argument 1 ('n')", "as for shapes"),
    ("jit(lambda n: fnp.zeros(n))(3)", "argument 0 ('n')", "static"),
    ("jit(lambda n: ft.nn.one_hot(1, n))(3)", "num_classes", "static_argnames='num_classes'"),
    ("jit(lambda a, i: a[i : i + 2])(x, 1)", "lax.dynamic_slice", "argument 1 ('i')"),
    ("jit(lambda a: np.array([a, a]))(1.0)", "functrans.numpy.stack"),
    ("y = np.zeros(3)\njit(lambda a: y.__setitem__(0, a))(1.0)", ".at[i].set(v)"),
    ("def f(a):\n    a[0] = 1.0\njit(f)(x)", "x = x.at[i].set(v)", "a[0] = 1.0"),
    ("a = fnp.ones(3)\na[0] = 2", "x = x.at[i].set(v)", "np.array(x)"),
    ("kept = []\njit(kept.append)(1.0)\nkept[0] + 1", "leak", "Return the value"),
    # results
    ("jit(lambda a: 'abc')(x)", "the result of <lambda>", "returns arrays"),
    ("def f(a):\n    a * 2\ngrad(f)(1.0)", "None", "`return` missing"),
    ("grad(lambda a: a * 2)(x)", "scalar", "(3,)", "jacrev"),
    ("grad(lambda a: a * 2)(3)", "int64", "1.0 instead of 1"),
    ("grad(lambda a, m: a)('a', 1)", "argument 0 ('a')", "functools.partial"),
    ("grad(lambda a: a, argnums='a')(1.0)", "argnums", "'a'"),
    ("lax.scan(lambda c, a: c, 0.0, x)", "(carry, y)", "(carry, None)"),
    ("lax.cond(True, lambda a: a, lambda a: (a, a), 1.0)", "different structures", "false_fun"),
    ("lax.cond(x > 0, lambda a: a, lambda a: a, 1.0)", "fnp.where"),
    ("ft.scipy.optimize.minimize(lambda a: a**2, x)", "fun", "real number", "f64[3]"),
    # arguments
    ("lax.cond(True, lambda a: a, lambda a: 2 * a)", "true_fun or false_fun takes other arguments", "'a'"),
    ("lax.scan(lambda c: c, 0.0, x)", "f takes other arguments"),
    ("lax.fori_loop(0, 3, lambda c: c, 0.0)", "body_fun takes other arguments"),
    ("def body():\n    return 1\nlax.while_loop(lambda c: c < 3, body, 0.0)", ": body_fun takes other arguments"),
    ("vmap(lambda a, b: a + b)(x, np.ones(4))", "argument 0 ('a')", "argument 1 ('b')", "(4,)"),
    ("vmap(lambda a: a)(1.0)", "argument 0 ('a')", "use None"),
    ("vmap(lambda a, b: a, in_axes=(0,))(x, x)", "in_axes has 1 entries for 2"),
    ("jit(lambda a, s: a, static_argnums=1)(1.0, [1])", "not hashable", "tuple instead of a list"),
    ("jit(lambda a: a, static_argnums=3)(1.0)", "static_argnums has 3"),
    ("ft.vjp(lambda a: a * 2, x)[1](1.0)", "cotangent", "(3,)"),
    ("ft.jvp(lambda a: a * 2, x, x)", "jvp(f, (x,), (t,))"),
    ("jit(lambda a: a @ np.ones((4, 3)))(x)", "(3,)", "(4, 3)", "Transpose x2"),
    ("fnp.ones((3, 3)) @ fnp.ones(2)", "extents 3 and 2", "must be equal"),
    ("fnp.ones((2, 3)) @ fnp.ones((2, 5))", "extents 3 and 2", "Transpose x1"),
    ("jit(lambda a: a + np.ones(4))(x)", "(3,)", "(4,)", "x[:, None]"),
    ("fnp.concatenate(x, x)", "axis", "(3,)"),
    ("fnp.sum(x, axis=2)", "axis 2"),
    ("fnp.asarray([1, 2]) ** -1", "negative power", "convert x to float"),
    ("jit(lambda a: a[1.0])(x)", "int(...)"),
    ("jit(lambda a: a[7])(x)", "index 7", "size 3"),
    ("ft.random.normal((3,))", "key", "functrans.random.key(seed)"),
    ("ft.random.normal(0, (3,))", "functrans.random.key(seed)"),
    ("ft.tree_util.tree_map(lambda a, b: a, {'a': 1}, {'b': 2})", "['a']", "['b']"),
    ("jit(lambda a: a)(np.array([object()]))", "argument 0 ('a')", "dtype=float"),
    ("jit(lambda a: a)(np.array(['a']))", "encode text"),
    ("fnp.zeros(3, dtype='float33')", "'float33'", "float32"),
    ("ft.config.jit = True", "disable_jit"),
    ("ft.scipy.optimize.minimize(fnp.sum, x, bounds={'a': 1})", "bounds", "pairs (lower, upper)", "{'a': 1}"),
    ("a = fnp.ones(3)\njit(lambda v: v + 1, donate_argnums=0)(a)\na + 1", "donated", "returned value"),
    # rules
    ("grad(ft.custom_vjp(lambda a: a))(1.0)", "defvjp(fwd, bwd)"),
    (
        "f = ft.custom_vjp(lambda a: a)\nf.defvjp(lambda a: a, lambda r, g: g)\ngrad(f)(1.0)",
        "fwd",
        "(output, residuals)",
    ),
    (
        "f = ft.custom_vjp(lambda a, b: a)\nf.defvjp(lambda a, b: (a, 0), lambda r, g: (g,))\ngrad(f)(1.0, 2.0)",
        "expected 2, got 1",
        "None for zero",
    ),
    (
        "f = ft.custom_vjp(lambda a: scipy.special.airy(a)[0])\n"
        "f.defvjp(lambda a: (scipy.special.airy(a)[0], a), lambda r, g: (g,))\ngrad(f)(1.0)",
        "the ufunc airy",
        "host = True",
        "pure_callback",
    ),
    ("class F(ft.Function):\n    pass\nF()(1.0)", "F.apply"),
    # Numba, pandas, SciPy
    ("slope = grad(lambda a: a * a)\nnumba.njit(lambda a: slope(a))(1.0)", "jit(grad(f))"),
    ("f = numba.njit(lambda a: a)\ngrad(f)(1.0)", "functrans.njit"),
    ("jit(pandas.Series)(x)", "functrans.numpy.asarray(series)"),
    ("from scipy.stats import norm\njit(norm.logpdf)(x)", "functrans.scipy.stats"),
    ("jit(lambda a: scipy.stats.norm(0, 1).logpdf(a))(x)", "functrans.scipy.stats"),
    ("jit(lambda a: scipy.optimize.minimize(lambda b: ((a - b) ** 2).sum(), x))(x)", "optimize.minimize"),
    ("jit(lambda a: scipy.optimize.curve_fit(lambda t, b: b * t, x, a))(x)", "functrans.scipy.optimize"),
    ("jit(lambda a: scipy.ndimage.map_coordinates(a, [[1.0]], order=1))(x)", "functrans.scipy.ndimage.map_coordinates"),
    ("jit(lambda a: scipy.ndimage.gaussian_filter(a, 1.0))(x)", "no scipy.ndimage.gaussian_filter", "pure_callback"),
    ("jit(lambda a: scipy.interpolate.interp1d(a, a))(x)", "no scipy.interpolate.interp1d", "host = True"),
    ("jit(lambda a: scipy.interpolate.CubicSpline(x, a)(0.5))(x)", "no scipy.interpolate.CubicSpline"),
    ("jit(lambda a: scipy.linalg.lstsq(np.eye(3), a))(x)", "functrans.numpy.linalg.lstsq"),
    ("jit(lambda a: scipy.special.sph_harm_y(1, 0, a, a))(x)", "functrans.scipy.special.sph_harm_y"),
    ("jit(lambda a: scipy.stats.pearsonr(x, a))(x)", "no scipy.stats.pearsonr"),
    # names
    ("fnp.lstsq", "Write functrans.numpy.linalg.lstsq"),
    ("fnp.inv", "Write functrans.numpy.linalg.inv"),
    ("fnp.softmax", "functrans.nn.softmax"),
    ("fnp.relu", "functrans.nn.relu"),
    ("fnp.grad", "Write functrans.grad"),
    ("fnp.sine", "Nearest: sin"),
    ("fnp.random", "functrans.random"),
    ("lax.where", "Write functrans.numpy.where"),
    ("lax.sum", "Write functrans.numpy.sum"),
    ("ft.PRNGKey", "Write functrans.random.PRNGKey"),
    ("ft.stop_gradient", "Write functrans.lax.stop_gradient"),
    ("ft.linalg", "functrans.numpy.linalg"),
    ("ft.array", "Write functrans.numpy.array"),
    ("ft.tree_map", "Write functrans.tree_util.tree_map"),
    ("ft.no_grad", "lax.stop_gradient(x)"),
    ("ft.backward", "grad(f)(x)"),
    ("ft.tensor", "functrans.numpy.asarray(x)"),
    ("ft.elementwise_grad", "vmap(grad(f))"),
    ("ft.random.randn", "random.normal(key, shape)"),
    ("ft.nn.softmx", "Nearest: softmax"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "words"), [(m[0], m[1:]) for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_message(code, words, tmp_path):
    script = tmp_path / "mistake.py"
    script.write_text(code)
    with pytest.raises(ft.errors.FunctransError) as caught:
        exec(compile(code, str(script), "exec"), dict(NAMES))
    message = str(caught.value)
    for word in words:
        assert word in message
    assert "object at 0x" not in message
    assert f"at {script}:" in message, textwrap.shorten(message, 300)


def test_names_are_looked_for_in_all_public_modules():
    root = Path(ft.__file__).parent
    files = [p for p in root.rglob("*.py") if "module_attributes(" in p.read_text()]
    named = {
        ".".join(("functrans", *p.relative_to(root).with_suffix("").parts)).removesuffix(".__init__")
        for p in files
    }
    namespaces = {
        "functrans.scipy",
        "functrans.scipy.cluster",
        "functrans.example_libraries",
    }  # of modules alone
    inside = {"functrans.runtime.module_getattr", "functrans.scipy.stats.frozen"}
    inside |= {name for name in named if name.startswith("functrans.extend.")}  # for JAX's libraries
    assert named - inside - namespaces == {*PUBLIC}


def test_hasattr_loads_nothing():
    code = "import functrans.numpy, sys; hasattr(functrans.numpy, 'softmx'); assert 'functrans.nn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
