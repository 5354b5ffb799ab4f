"""einsum against NumPy's on random subscripts: repeated labels, ellipses, results, orders, lists of labels, dtypes."""

import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import ArgumentValueError, DtypeError, FunctransError
from functrans.testing import check

RNG = np.random.default_rng(0)
A, B, C = RNG.random((2, 3)), RNG.random((3, 4)), RNG.random((4, 2))


@st.composite
def terms(draw, letters, extents, dots):
    """The subscripts of one operand and its shape."""
    labels = draw(st.lists(st.sampled_from(letters), max_size=3))
    shape = [extents[c] for c in labels]
    if dots is None or not draw(st.booleans()):
        return "".join(labels), shape
    at = draw(st.integers(0, len(labels)))
    own = [draw(st.sampled_from([n, n, 1])) for n in dots[draw(st.integers(0, len(dots))) :]]
    return "".join([*labels[:at], "...", *labels[at:]]), shape[:at] + own + shape[at:]


def numbers(kind, shape, random):
    x = random.uniform(0.5, 1.5, shape)
    return {"f": x, "c": x + 1j * random.uniform(0.5, 1.5, shape), "i": random.integers(1, 5, shape)}[kind]


@st.composite
def problems(draw):
    """Subscripts and operands."""
    letters = "abcdeB"[: draw(st.integers(1, 6))]
    extents = {c: draw(st.integers(1, 3)) for c in letters}
    dots = draw(st.lists(st.integers(1, 3), max_size=2)) if draw(st.booleans()) else None
    operands = draw(st.lists(terms(letters, extents, dots), min_size=1, max_size=4))
    text = ",".join(t for t, _ in operands)
    if draw(st.booleans()):
        used = sorted(set(text) - set(".,"))
        out = draw(st.permutations(used))[: draw(st.integers(0, len(used)))]
        if "..." in text:
            out.insert(draw(st.integers(0, len(out))), "...")
        text += f"->{''.join(out)}"
    random = np.random.default_rng(draw(st.integers(0, 99)))
    return text, [numbers(draw(st.sampled_from("fffci")), shape, random) for _, shape in operands]


def with_lists(text, arrays):
    """The same call with lists of labels."""
    ins, arrow, out = text.partition("->")
    labels = lambda t: [... if c == "." else string.ascii_letters.index(c) for c in t.replace("...", ".")]
    args = [part for t, x in zip(ins.split(","), arrays) for part in (x, labels(t))]
    return [*args, labels(out)] if arrow else args


@settings(max_examples=150)
@given(problems(), st.sampled_from([True, False, "greedy", "optimal"]))
def test_einsum_is_numpys(problem, optimize):
    text, arrays = problem
    for args in ((text, *arrays), with_lists(text, arrays)):
        expected = np.einsum(*args, optimize=optimize)
        got = fnp.einsum(*args, optimize=optimize)
        assert (got.shape, got.dtype) == (np.shape(expected), expected.dtype)
        np.testing.assert_allclose(got, expected, rtol=1e-12)


@settings(max_examples=15)
@given(problems())
def test_einsum_transformed(problem):
    text, arrays = problem
    f = lambda *xs: fnp.einsum(text, *xs)
    if any(x.dtype.kind in "fc" for x in arrays):
        check(f, *arrays, order=1, laws=("jvp_is_slope", "vjp_is_adjoint"))
    np.testing.assert_allclose(ft.jit(f)(*arrays), f(*arrays), rtol=1e-12)
    lanes = [np.stack([x, 2 * x]) for x in arrays]
    np.testing.assert_allclose(ft.vmap(f)(*lanes), np.stack([f(*xs) for xs in zip(*lanes)]), rtol=1e-12)


@pytest.mark.parametrize(
    "optimize",
    [("greedy", 1e5), ("optimal", 10), ["einsum_path", (0, 1), (0, 1)], ["einsum_path", (1, 2), (0, 1)],
     ["einsum_path", (0, 1, 2)]],
    ids=str,
)  # fmt: skip
def test_paths(optimize):
    f = lambda *xs: np.einsum("ij,jk,kl", *xs, optimize=optimize)
    for g in (ft.jit(f), lambda *xs: ft.vjp(f, *xs)[0]):
        np.testing.assert_allclose(g(A, B, C), A @ B @ C, rtol=1e-12)


def test_the_path_is_numpys():
    x, y, z = np.ones((2, 500)), np.ones((500, 2)), np.ones((2, 300))
    jaxpr = ft.make_jaxpr(lambda *xs: fnp.einsum("ij,jk,kl->il", *xs))(x, y, z)
    first = next(e for e in jaxpr.eqns if e.primitive.name == "dot_general")
    assert {v.aval.shape for v in first.invars} == {(2, 500), (500, 2)}


@pytest.mark.parametrize(
    "args",
    [("ij,jk", A, C), ("ij->ijk", A), ("ij,jk", A), ("ij,k", A, B, C), ("i", A), ("ijk", A), ("ij->ii", A), ("i.j", A),
     ("ij-", A), ("ij->i->j", A), ("i...->i", A), ("ii", A), ("i1", A), (A, [0, 1, 2])],
    ids=lambda a: str(a[0])[:8],
)  # fmt: skip
def test_refusals(args):
    with pytest.raises(ValueError):
        np.einsum(*args)
    with pytest.raises(ValueError) as caught:
        fnp.einsum(*args)
    assert isinstance(caught.value, FunctransError)


def test_dtype_and_casting():
    for options in ({"dtype": complex}, {"dtype": np.float32, "casting": "same_kind"}):
        expected = np.einsum("ij,jk", A, B, **options)
        got = fnp.einsum("ij,jk", A, B, **options)
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-6)
    with pytest.raises(
        DtypeError, match=r"operand 0 of dtype float64 cannot be cast to float32 by the rule 'safe'"
    ):
        fnp.einsum("ij,jk", A, B, dtype=np.float32)
    with pytest.raises(ArgumentValueError):
        fnp.einsum("é", A[0])


def test_path_of_traced_values():
    want = np.einsum_path("ij,jk,kl->il", A, B, C)
    assert fnp.einsum_path("ij,jk,kl->il", A, B, C) == want
    found = []

    def f(a, b, c):
        found.append(np.einsum_path("ij,jk,kl->il", a, b, c))
        return np.einsum("ij,jk,kl->il", a, b, c, optimize=found[-1][0])

    np.testing.assert_allclose(ft.jit(f)(A, B, C), A @ B @ C)
    assert found == [want]
