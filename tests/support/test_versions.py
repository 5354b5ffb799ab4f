"""The mark ``needs``, and what it asks."""

from pathlib import Path

import pytest
from versions import has


def test_requirements():
    assert has("numpy>=2")
    assert has("pytest>=8,<99")
    assert not has("numpy<2")
    assert not has("scipy>=99")


def test_the_mark_skips_with_its_reason(request):
    conftest = str(Path(__file__).parents[1] / "conftest.py")
    plugin = next(
        p for p in request.config.pluginmanager.get_plugins() if getattr(p, "__file__", "") == conftest
    )

    def collected(*marks):
        item = pytest.Function.from_parent(request.node.parent, name="made", callobj=lambda: None)
        for mark in marks:
            item.add_marker(mark)
        plugin.pytest_collection_modifyitems([item])
        return [mark.args[0] for mark in item.iter_markers("skip")]

    needs = pytest.mark.needs
    assert collected() == []
    assert collected(needs("numpy>=2", "scipy>=1", reason="both are there")) == []
    assert collected(needs("numpy>=2", "scipy>=99", reason="not yet")) == ["needs scipy>=99: not yet"]
    assert collected(needs("numpy>=99", reason="a"), needs("numpy>=2", reason="b")) == ["needs numpy>=99: a"]
