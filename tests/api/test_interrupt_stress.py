"""Threads that compile, call, drop and donate, while signals raise in the main thread at random instants, and it forks.

`FUNCTRANS_STRESS_SECONDS` makes it longer.
"""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX signals and fork")

SCRIPT = r"""
import faulthandler, os, random, signal, sys, threading, time, traceback
from collections import Counter
import numpy as np, numpy.testing
import functrans as ft, functrans.numpy as fnp
from functrans import lax

SECONDS, SEED = float(sys.argv[1]), int(sys.argv[2])
faulthandler.dump_traceback_later(SECONDS + 100, exit=True)  # something waits for ever
END = time.monotonic() + SECONDS

class Alarm(Exception):
    pass

armed, wrong, lost = [], [], Counter()
sent = forks = 0

def ring(number, frame):
    global sent
    if armed:
        armed.clear()
        sent += 1
        raise Alarm

def unraisable(info):
    # Python ignores what is raised while it drops an object.
    if info.exc_type is Alarm:
        lost[str(info.object)[:80]] += 1
        armed.append(1)
    elif info.exc_type is not None:
        wrong.append(repr(info))

for number in (signal.SIGALRM, signal.SIGUSR1):
    signal.signal(number, ring)
sys.unraisablehook = unraisable
threading.excepthook = lambda info: wrong.append("".join(traceback.format_exception(info.exc_value)))

def same(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-12)

shared = ft.jit(lambda x, n: fnp.sum(fnp.cumsum(x) * n), static_argnums=1)
step = ft.jit(lambda x, y: x * 0.5 + y, donate_argnums=0)

def new_kernel(rng):
    k = rng.randrange(1, 1000)
    f = ft.jit(lambda x: fnp.sum(fnp.sin(x * k) + (x if k % 3 else x * x) * (k % 7)))
    x = np.linspace(0.0, 1.0, rng.randrange(1, 9))
    same(f(x), np.sum(np.sin(x * k) + (x if k % 3 else x * x) * (k % 7)))

def known_kernel(rng):
    n = rng.randrange(5)
    same(shared(np.ones(4), n), 10.0 * n)

def gradient(rng):
    k = rng.randrange(4)
    same(ft.jit(ft.grad(lambda x: lax.fori_loop(0, k, lambda i, c: c * x, x)))(1.5), (k + 1) * 1.5**k)

def donated(rng):
    n = rng.randrange(1, 40)
    x = fnp.zeros(n)
    held = memoryview(x) if rng.random() < 0.3 else None
    for _ in range(3):
        x = step(x, 1.0)
    same(x, np.full(n, 1.75))
    assert held is None or held.tolist() == [0.0] * n

def clear(rng):
    if rng.random() < 0.2:
        ft.clear_caches()

JOBS = [new_kernel, known_kernel, gradient, donated, clear]
counts = [0] * 4

def work(number):
    rng = random.Random(SEED + number)
    while time.monotonic() < END and not wrong:
        rng.choice(JOBS)(rng)
        counts[number] += 1
        if rng.random() < 0.3:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)

def interrupted(rng):
    try:
        armed.append(1)
        signal.setitimer(signal.ITIMER_REAL, rng.choice([1e-4, 1e-3, 1e-2]) * rng.random() + 1e-6, 0.02)
        while True:
            rng.choice(JOBS)(rng)
    except Alarm:
        signal.setitimer(signal.ITIMER_REAL, 0)

def forked(rng):
    child = os.fork()
    if not child:
        code = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            faulthandler.register(signal.SIGALRM, chain=True)  # shows where
            signal.alarm(60)  # ends a child that waits for ever
            new_kernel(rng), known_kernel(rng), donated(rng)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 0, f"a child ended with {code}"

threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(4)]
for thread in threads:
    thread.start()
rng = random.Random(SEED)
while time.monotonic() < END and not wrong:
    interrupted(rng)
    if sent % 5 == 0:
        forked(rng)
        forks += 1
for thread in threads:
    thread.join()
for job in JOBS:
    job(rng)
assert not wrong, wrong[0]
print(sent, "interrupts,", forks, "forks,", sum(counts), "calls in other threads,", dict(lost), "lost")
assert not lost and sent > 20 and forks > 1
"""


@pytest.mark.slow
@pytest.mark.parametrize("cache", ["0", "1"], ids=["compiled", "from the disk"])
def test_interrupts_at_random_instants_beside_four_threads(tmp_path, cache):
    seed = int.from_bytes(os.urandom(4))
    environment = {**os.environ, "FUNCTRANS_CACHE_DIR": str(tmp_path), "FUNCTRANS_CACHE": cache}
    seconds = os.environ.get("FUNCTRANS_STRESS_SECONDS", "20")
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SCRIPT, seconds, str(seed)]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    print(f"seed {seed}: {found.stdout}")
    assert (found.returncode, found.stderr) == (0, ""), f"seed {seed}: {found.stdout}{found.stderr[-8000:]}"
