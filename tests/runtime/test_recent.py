"""Caches of bounded size."""

from collections import OrderedDict

from hypothesis import given
from hypothesis import strategies as st

from functrans.api.compiled.caches import Recent


@given(st.lists(st.integers(0, 30)), st.integers(2, 12))
def test_what_is_used_often_enough_stays_and_the_rest_goes(keys, most):
    """Half the limit of entries that were used last are always there, and never more than the limit."""
    dropped = {}
    cache = Recent(lambda: most, dropped.update)
    used = OrderedDict()
    for key in keys:
        found = cache[key]
        assert found in (None, -key - 1)
        if key in used and list(reversed(used)).index(key) < most // 2:
            assert found is not None
        if found is None:
            cache[key] = -key - 1
            dropped.pop(key, None)
        used[key] = used.pop(key, None)
        entries = dict(cache.recent_items())
        assert len(entries) == len(list(cache.recent_items())) <= most
        assert entries.keys().isdisjoint(dropped)
        assert entries.keys() | dropped.keys() == used.keys()
        assert next(iter(cache)) in entries


def test_forgetting():
    cache = Recent(lambda: 4)
    for key in range(4):
        cache[key] = str(key)
    cache.forget(0)  # of the old generation
    cache.forget(3)
    cache.forget(7)
    assert [key for key, _ in cache.recent_items()] == [2, 1]
    cache.clear()
    assert (cache[1], cache[2], len(cache)) == (None, None, 0)
