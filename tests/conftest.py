"""Every test runs with the verifier between passes and in checked mode, and hypothesis without clocks."""

import gc
import os
import signal
from collections import Counter

import pytest
from hypothesis import settings

# For this process, and for those that tests start: the tests compile what they run.
os.environ.setdefault("FUNCTRANS_CHECKED", "1")
os.environ.setdefault("FUNCTRANS_CACHE", "0")

from functrans.core.config import config

settings.register_profile("functrans", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("functrans")


@pytest.fixture(autouse=True, scope="session")
def _verify_between_passes():
    """Set for the process, not patched: the threads that tests start must see it too."""
    config.verify = True
    yield
    config.verify = False


@pytest.fixture(autouse=True, scope="session")
def _interruptible():
    """Ctrl-C interrupts, also where a shell started the tests in the background, which ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of the cases of a test marked ``wide(n)`` each `n`-th is quick, and the others are slow."""
    seen = Counter()
    for item in items:
        wide = item.get_closest_marker("wide")
        if wide is not None:
            test = item.nodeid.partition("[")[0]
            if seen[test] % wide.args[0]:
                item.add_marker(pytest.mark.slow)
            seen[test] += 1


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Garbage collections need not visit the tests and modules, which stay: millions of objects."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()
        gc.set_threshold(10_000)  # tests make more objects, and keep fewer, than programs do
