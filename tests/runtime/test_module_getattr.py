"""What public modules answer to ``dir``, and to names they do not have."""

import importlib
import inspect
import pickle

import pytest

import functrans
from functrans import errors
from functrans.runtime.module_getattr import nearest_names


def public_modules(module):
    """The module, and those that its ``__all__`` names, at any depth."""
    yield module.__name__
    for name in module.__all__:
        if inspect.ismodule(inner := getattr(module, name)) and inner is not errors:
            yield from public_modules(inner)


MODULES = sorted(public_modules(functrans))


@pytest.mark.parametrize("name", MODULES)
def test_dir_lists_public_names(name):
    module = importlib.import_module(name)
    assert [n for n in dir(module) if not n.startswith("__")] == sorted(module.__all__)
    assert "__doc__" in dir(module)
    for public in module.__all__:
        getattr(module, public)


@pytest.mark.parametrize("name", MODULES)
def test_public_objects_are_pickled_by_name(name):
    module = importlib.import_module(name)
    for public in module.__all__:
        x = getattr(module, public)
        if inspect.isroutine(x) or inspect.isclass(x):
            assert pickle.loads(pickle.dumps(x)) is x, public


@pytest.mark.parametrize("name", MODULES)
def test_no_such_name(name):
    module = importlib.import_module(name)
    public = max(module.__all__, key=len)
    with pytest.raises(errors.NoAttributeError, match=f"{name} has no '{public}_'.*{public}"):
        getattr(module, f"{public}_")
    with pytest.raises(AttributeError, match="__wrong__"):
        module.__wrong__


def test_modules_inside_are_not_proposed():
    with pytest.raises(errors.NoAttributeError) as caught:
        functrans.numpy.creatio
    assert "creation" not in str(caught.value)


def test_nearest_names():
    assert nearest_names("sine", ["sin", "sinh", "cos"])[0] == "sin"
    assert nearest_names("arctanh2", ["arctan2", "_arctanh2"]) == ["arctan2"]


@pytest.mark.parametrize("name", ["functrans.lax", "functrans.random", "functrans.scipy.special"])
def test_a_package_lists_the_names_of_its_parts(name):
    """They load on demand, so the package cannot read them from the parts."""
    listed = {}
    for public, (module, own) in importlib.import_module(name)._later.homes.items():
        if module != name:
            assert public == own
            listed.setdefault(module, set()).add(own)
    for module, names in listed.items():
        assert names == set(importlib.import_module(module).__all__), module
