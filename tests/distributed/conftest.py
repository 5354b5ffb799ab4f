"""Programs on several ranks: processes that mpiexec starts, and threads."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("programs")
#: Ranks share the cores.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def run_group(command, timeout, **environment):
    """Run a command, and kill it with all that it started after `timeout` seconds."""
    process = subprocess.Popen(
        [str(part) for part in command],
        env=os.environ | ONE_THREAD | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        pytest.fail(f"still running after {timeout} s\n{out}\n{err}")
    return subprocess.CompletedProcess(command, process.returncode, out, err)


@pytest.fixture(scope="session", name="run_group")
def _run_group():
    return run_group


@pytest.fixture(scope="session")
def on_ranks():
    """``on_ranks(n, program, *args)``: run a file of `programs`, or another path, on `n` processes."""

    def run(n, program, *args, timeout=60, **environment):
        mpiexec = Path(sys.executable).with_name("mpiexec")
        command = [mpiexec, "-n", n, sys.executable, "-m", "mpi4py", PROGRAMS / program, *args]
        return run_group(command, timeout, **environment)

    return run
