"""Sequences in groups and by masks."""

import numpy as np
import pytest

from functrans.core.aval import Zero
from functrans.passes.masks import chosen, perturbed, scatter, split, with_zeros


def test_groups():
    assert split("abcdef", 2, 0, 3) == [["a", "b"], [], ["c", "d", "e"], ["f"]]
    assert split([]) == [[]]


def test_scatter_undoes_the_choice():
    mask, values = (True, False, True, False), ["a", "b", "c", "d"]
    assert chosen(values, mask) == ["a", "c"]
    assert scatter(mask, chosen(values, mask)) == ["a", None, "c", None]
    assert scatter(mask, ["x", "y"], values) == ["x", "b", "y", "d"]
    with pytest.raises(ValueError, match="shorter"):
        chosen(values, mask[:3])


def test_symbolic_zeros():
    first, second = with_zeros((False, True), ["t"], [np.ones(2), np.ones(3)])
    assert type(first) is Zero
    assert first.shape == (2,)
    assert second == "t"
    assert perturbed([first, second]) == (False, True)
