"""Methods that arrays have in PyTorch: what is written instead."""

import copy
import pickle
import re

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, lax, scipy
from functrans.numpy.dispatch import _NUMPY

X = fnp.asarray([1.0, 2.0])
CASES = {
    "clone": "use it directly",
    "detach": "functrans.lax.stop_gradient(x)",
    "unsqueeze": "functrans.numpy.expand_dims(x, axis)",
    "clamp": "x.clip(low, high)",
    "requires_grad": "functrans.grad(f)(x)",
    "exp": "functrans.numpy.exp(x)",
    "add_": "x.at[i].set(v)",
    "numpy": "np.asarray(x)",
    "double": "x.astype(dtype)",
}


@pytest.mark.parametrize("name", CASES)
def test_arrays_and_traced_values_tell_what_to_write(name):
    for f in (
        lambda x: getattr(x, name),
        ft.grad(lambda x: getattr(x, name)),
        ft.jit(lambda x: getattr(x, name)),
    ):
        with pytest.raises(AttributeError, match=re.escape(f"no attribute '{name}': ")) as caught:
            f(X)
        assert CASES[name] in caught.value.message
        assert type(caught.value) is errors.NoAttributeError


def test_what_is_named_exists():
    assert all(callable(getattr(fnp, name)) for name in _NUMPY)
    for f in (lax.stop_gradient, scipy.special.expit, scipy.special.softmax):
        assert callable(f)
    for name in ("linalg", "concatenate", "take", "take_along_axis", "where", "ones", "zeros", "argsort"):
        assert hasattr(fnp, name)


def test_other_names_are_unknown_as_usual():
    with pytest.raises(AttributeError, match=r"^'Array' object has no attribute 'nonsense'$"):
        X.nonsense
    assert not hasattr(X, "clone")
    assert not hasattr(X, "__cuda_array_interface__")
    assert getattr(X, "detach", None) is None
    assert copy.deepcopy(X).tolist() == pickle.loads(pickle.dumps(X)).tolist() == [1.0, 2.0]
    assert np.asarray(X).sum() == X.sum() == 3.0
