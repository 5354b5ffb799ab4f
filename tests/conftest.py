"""How the tests run: two thirds in checked mode with the verifier, one third as shipped; hypothesis without clocks.

*Checked*: kernels test their own reads and writes, the verifier runs between passes, nothing comes from the disk cache.
Quick tests compile without LLVM's passes, since each compiles what it runs.
*As shipped*: what users run, with the options' defaults and a disk cache in a temporary folder. Of the workers that
``pytest -n`` starts, each third one runs quick tests as shipped; ``FUNCTRANS_TESTS=shipped`` or ``checked`` decides for
all.

Quick tests draw the same examples each time. Slow ones draw new ones, and print the seed.
"""

import atexit
import gc
import os
import random
import shutil
import signal
import sys
import tempfile
import zlib
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings


def _as_shipped(slow: bool) -> bool:
    """Whether the tests of this process run as shipped."""
    mode = os.environ.get("FUNCTRANS_TESTS", "")
    if mode not in ("", "shipped", "checked"):
        raise pytest.UsageError(f"FUNCTRANS_TESTS is 'shipped', 'checked' or not set, not {mode!r}")
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    return mode == "shipped" if mode else not slow and int(worker) % 3 == 2


# Set in the environment, for this process and for those that tests start. The process that starts the workers makes the
# folder of the cache, and removes it.
if "FUNCTRANS_CACHE_DIR" not in os.environ:
    os.environ["FUNCTRANS_CACHE_DIR"] = tempfile.mkdtemp(prefix="functrans-tests-")
    atexit.register(shutil.rmtree, os.environ["FUNCTRANS_CACHE_DIR"], ignore_errors=True)

# The generator of random programs, and the versions of libraries, for all tests.
sys.path += [str(Path(__file__).with_name(folder)) for folder in ("properties", "support")]

from versions import has  # noqa: E402

from functrans.runtime.config import config as options  # noqa: E402  it reads the environment when imported

settings.register_profile("functrans", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("functrans-slow", settings.get_profile("functrans"), derandomize=False)
settings.load_profile("functrans")


def _set(name, value):
    """Set an option here, and for the processes that tests start; workers would inherit that of who starts them."""
    os.environ[f"FUNCTRANS_{name.upper()}"] = value if isinstance(value, str) else str(int(value))
    setattr(options, name, set(filter(None, [value])) if isinstance(value, str) else value)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Slow tests draw new examples; workers get the seed of the process that starts them.

    Where ``CI`` is set they draw the same ones each time, as hypothesis itself has it there: a change is judged by what
    it changes. A seed on the command line draws others.
    """
    slow = config.option.markexpr == "slow"
    shipped = _as_shipped(slow)
    _set("checked", not shipped)
    _set("cache", shipped)
    _set("without", "llvm_passes" if not shipped and config.option.markexpr == "not slow" else "")
    seed = config.getoption("hypothesis_seed")
    if slow and (seed is not None or not os.environ.get("CI")):
        settings.load_profile("functrans-slow")
        if seed is None:
            config.option.hypothesis_seed = str(random.SystemRandom().randrange(1 << 32))


def _is_sampled(test):
    """Whether a test is one of each n, by a hash of its name: the same in all processes, and on all machines."""
    count, _, rest = os.environ.get("FUNCTRANS_TEST_SAMPLE", "1").partition(":")
    return zlib.crc32(test.encode()) % int(count) == int(rest or 0)


def pytest_report_header(config):
    """The modes and the seed."""
    seed = config.getoption("hypothesis_seed")
    again = f"; new examples: --hypothesis-seed={seed} repeats them" if seed is not None else ""
    slow = config.option.markexpr == "slow"
    mode = (
        "as shipped" if _as_shipped(slow) else "checked" if slow else "checked; each third worker as shipped"
    )
    return f"functrans: {mode}{again}"


@pytest.fixture(autouse=True, scope="session")
def _verify_between_passes():
    """Set for the process, not patched: the threads that tests start must see it too."""
    options.verify = options.checked
    yield
    options.verify = False


@pytest.fixture(autouse=True)
def _nothing_from_disk_for_a_changed_compiler(request):
    """A test that may change functrans itself reads nothing that was compiled without the change."""
    if "monkeypatch" in request.fixturenames:
        with options.patch(cache=False):
            yield
    else:
        yield


@pytest.fixture(autouse=True, scope="session")
def _interruptible():
    """Ctrl-C interrupts, also where a shell started the tests in the background, which ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of the cases of a test marked ``wide(n)`` each `n`-th is quick, and the others are slow; of a test with more than
    eight cases each third, if it has no mark. ``FUNCTRANS_TEST_SAMPLE=10`` keeps each tenth, by a hash of its name,
    and ``10:3`` others. A test or case marked ``needs("numpy>=2.1", reason=...)`` is skipped without these versions.

    Names of tests are the same in all workers: an address in one would stop them all.
    """
    addresses = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if addresses:
        raise pytest.UsageError(f"names of tests with addresses: give the cases ids: {addresses[:3]}")
    seen = Counter()
    tests = [item.nodeid.partition("[")[0] for item in items]
    cases = Counter(tests)
    for test, item in zip(tests, items, strict=True):
        wide = item.get_closest_marker("wide")
        step = wide.args[0] if wide is not None else 3 if cases[test] > 8 else 1
        if seen[test] % step:
            item.add_marker(pytest.mark.slow)
        seen[test] += 1
        for needs in item.iter_markers("needs"):
            missing = [requirement for requirement in needs.args if not has(requirement)]
            if missing:
                item.add_marker(pytest.mark.skip(f"needs {', '.join(missing)}: {needs.kwargs['reason']}"))
    items[:] = [item for item in items if _is_sampled(item.nodeid)]


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
