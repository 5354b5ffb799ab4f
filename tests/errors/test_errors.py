"""The error classes: one name for users, kinds that `except` knows, the user's line."""

import inspect

import numpy as np
import pytest

import functrans as ft
from functrans import errors
from functrans.errors.source import last_line

CLASSES = [getattr(errors, name) for name in errors.__all__]

#: What an error is caught by, beside `FunctransError`.
KINDS = {
    "FunctionError": [RuntimeError],
    "FunctionDefinitionError": [errors.FunctionError, TypeError],
    "FunctionContractError": [errors.FunctionError],
    "ContextAttributeError": [errors.FunctionError, AttributeError],
    "MissingRuleError": [errors.FunctionError, errors.NoRuleError, NotImplementedError],
    "GradientCountError": [errors.FunctionError, TypeError],
    "BackwardError": [errors.FunctionError, errors.GradientError, TypeError],
    "GradientShapeError": [errors.FunctionError, errors.ShapeError, ValueError],
    "GradientDtypeError": [errors.FunctionError, errors.DtypeError, TypeError],
    "GradientStructureError": [errors.FunctionError, TypeError],
    "TangentError": [errors.FunctionError, TypeError],
    "TangentCountError": [errors.TangentError],
    "TangentShapeError": [errors.TangentError, errors.ShapeError],
    "TangentDtypeError": [errors.TangentError, errors.DtypeError],
    "VmapRuleError": [errors.FunctionError],
    "OnceDifferentiableError": [errors.FunctionError],
    "SavedValuesFreedError": [errors.FunctionError],
    "CapturedTracerError": [errors.FunctionError],
    "NaNError": [FloatingPointError],
    "AxisError": [np.exceptions.AxisError],
    "LinAlgError": [np.linalg.LinAlgError],
}


def test_all_is_every_class():
    actual = {
        n for n, x in vars(errors).items() if inspect.isclass(x) and issubclass(x, errors.FunctransError)
    }
    assert actual == set(errors.__all__)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_one_name_in_one_place(cls):
    assert issubclass(cls, errors.FunctransError)
    assert f"{cls.__module__}.{cls.__qualname__}" == f"functrans.errors.{cls.__name__}"
    assert getattr(ft.errors, cls.__name__) is cls


@pytest.mark.parametrize("name", KINDS)
def test_kinds(name):
    for kind in KINDS[name]:
        assert issubclass(getattr(errors, name), kind)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_message_and_line(cls):
    error = cls("what was wrong")
    assert error.message == "what was wrong"
    assert str(error).startswith("what was wrong\n  at ")
    assert error.source.function == "test_message_and_line"


def test_the_base_of_custom_rules_is_a_public_name():
    assert ft.FunctionError is errors.FunctionError


def test_last_line_is_that_of_the_return():
    def fun(x):
        if x is None:
            return 0
        return x + 1

    source = last_line(fun)
    assert source.text == "return x + 1"
    assert last_line(ft.jit(fun)) == source
    assert last_line(print) is None
