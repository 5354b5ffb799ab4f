"""How many iterations after it is written an element is read: against all iterations."""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from functrans.lowering.loops.from_jaxpr.read_patterns import Shifted, lag, shifted, split

LOOPS, SIZE, EXTENT = (0, 1), 9, 3
along = st.one_of(
    st.none(), st.sampled_from(LOOPS), st.builds(Shifted, st.sampled_from(LOOPS), st.integers(1, 3))
)


def element(index_map, shape, counters):
    place = []
    for n, d in zip(shape, index_map):
        axis, by = split(d) if d is not None else (None, 0)
        place.append(0 if n == 1 else counters[axis] + by)
    return tuple(place)


def by_running(written, read, shape):
    """The lag by all iterations; None if an index is unknown, if it varies, or if it is not along the last loop."""
    used = [(w, r) for n, w, r in zip(shape, written, read) if n != 1]
    if any(w is None or r is None for w, r in used):
        return None
    writers, lags = {}, set()
    for counters in product(range(EXTENT), repeat=len(LOOPS)):
        writers.setdefault(element(written, shape, counters), []).append(counters)
    if any(len(some) > 1 for some in writers.values()):
        return None
    for counters in product(range(-EXTENT, 2 * EXTENT), repeat=len(LOOPS)):
        for first in writers.get(element(read, shape, counters), ()):
            lags.add(tuple(b - a for a, b in zip(first, counters)))
    if len(lags) != 1:
        return None
    (outer, inner) = lags.pop()
    return None if outer else inner


@settings(max_examples=120)
@given(st.lists(st.tuples(along, along, st.sampled_from([SIZE, SIZE, SIZE, 1])), min_size=1, max_size=3))
def test_the_lag_is_that_of_all_elements(axes):
    written, read, shape = (tuple(x) for x in zip(*axes))
    found = lag(written, read, shape, LOOPS)
    expected = by_running(written, read, shape)
    assert found is None or found == expected
    # Each loop along one axis, the same in both: then nothing else is asked.
    pairs = [
        (split(w)[0], split(r)[0]) for n, w, r in zip(shape, written, read) if n != 1 and None not in (w, r)
    ]
    if sorted(pairs) == [(0, 0), (1, 1)]:
        assert found == expected


def test_indices_that_are_unknown_have_no_lag():
    assert lag((0, 1), (0, 1), (9, 9), LOOPS) == 0
    assert lag((0, 1, None), (0, 1, None), (9, 9, 9), LOOPS) is None
    assert lag((0, 1, None), (0, 1, None), (9, 9, 1), LOOPS) == 0
    assert lag((0, 1), (0, None), (9, 9), LOOPS) is None
    assert lag((0, None), (0, 1), (9, 9), LOOPS) is None
    assert lag((0, Shifted(1, 2)), (0, 1), (9, 9), LOOPS) == 2
    assert lag((0, 1), (0, Shifted(1, 2)), (9, 9), LOOPS) == -2
    assert lag((Shifted(0, 1), 1), (0, 1), (9, 9), LOOPS) is None
    assert lag((1, 0), (0, 1), (9, 9), LOOPS) is None
    assert lag((0,), (0,), (9,), LOOPS) is None


def test_shifts_add_up():
    assert shifted(None, 3) is None
    assert shifted(1) == 1
    assert shifted(1, 2) == Shifted(1, 2)
    assert shifted(Shifted(1, 2), 3) == Shifted(1, 5)
    assert shifted(Shifted(1, 2), -2) == 1
    assert split(4) == (4, 0)
    assert split(Shifted(4, 2)) == (4, 2)
