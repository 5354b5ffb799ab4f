"""Start a script on several ranks: ``python -m functrans.distributed.run -n 4 script.py args``.

It calls ``mpiexec`` as ``mpiexec -n 4 python -m mpi4py script.py args`` does, so a rank that fails ends the job. Ranks
share the cores: unless the environment says otherwise, each has its part of them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import types
from collections.abc import Mapping, Sequence
from importlib.util import find_spec

from ..runtime.cores import usable_cores

#: What sets the number of threads of a library.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
#: The exit code of a job that `--timeout` ended, as that of the command ``timeout``.
TIMED_OUT = 124
#: Seconds from the request to end until the job is killed.
_GRACE = 3.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the ranks, pass signals on, and return the exit code of the job.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the command line by default.

    Returns
    -------
    int
        That of ``mpiexec``; 124 after a timeout, 128 and its number after a signal, 2 if the job cannot start.
    """
    options = _parser().parse_args(arguments)
    if not options.script:
        _parser().error("which script? python -m functrans.distributed.run -n 4 script.py")
    mpiexec = find_mpiexec()
    if mpiexec is None or find_spec("mpi4py") is None:
        what = "mpiexec is not" if mpiexec is None else "mpi4py is not installed"
        where = f" beside {sys.executable} or on PATH" if mpiexec is None else ""
        print(f"functrans.distributed.run: {what}{where}. pip install 'functrans[mpi]'", file=sys.stderr)
        return 2
    command = [mpiexec, "-n", str(options.n), sys.executable, "-m", "mpi4py", *options.script]
    return run(command, environment(options.n, mpiexec, os.environ), options.timeout)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m functrans.distributed.run", description="Start a Python script on several ranks."
    )
    parser.add_argument("-n", type=_positive, required=True, help="the number of ranks")
    parser.add_argument("--timeout", type=float, metavar="S", help="end the job after S seconds")
    parser.add_argument("script", nargs=argparse.REMAINDER, help="script.py, or -m module, and its arguments")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def find_mpiexec() -> str | None:
    """The ``mpiexec`` beside the interpreter, which belongs to its libraries, or else that of the system."""
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    return beside if os.access(beside, os.X_OK) else shutil.which("mpiexec")


def environment(n: int, mpiexec: str, given: Mapping[str, str]) -> dict[str, str]:
    """The environment of `n` ranks on this machine; what is set already stays."""
    cores = usable_cores()
    added = dict.fromkeys(_THREADS, str(max(1, cores // n)))
    if _is_open_mpi(mpiexec):
        added |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        if n > cores:
            added["PRTE_MCA_rmaps_default_mapping_policy"] = ":oversubscribe"  # version 5
            added["OMPI_MCA_rmaps_base_oversubscribe"] = "1"  # versions before
    return {**added, **given}


def _is_open_mpi(mpiexec: str) -> bool:
    told = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False)
    return any(word in told.stdout + told.stderr for word in ("Open MPI", "OpenRTE", "PRRTE", "prte"))


def run(command: Sequence[str], environment: Mapping[str, str], timeout: float | None) -> int:
    """Run a command in a process group of its own, to which signals are passed on, and return its exit code."""
    job = subprocess.Popen(command, env=environment, process_group=0)
    received: list[int] = []

    def forward(number: int, frame: types.FrameType | None) -> None:
        received.append(number)
        job.send_signal(number)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        code = job.wait(timeout)
    except subprocess.TimeoutExpired:
        print(f"functrans.distributed.run: not done after {timeout:g} s; the job ends", file=sys.stderr)
        end(job)
        return TIMED_OUT
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    ended_by = [number for number in received if number not in (signal.SIGUSR1, signal.SIGUSR2)]
    if ended_by:
        return 128 + ended_by[0]
    return code if code >= 0 else 128 - code


def end(job: subprocess.Popen[bytes]) -> None:
    """End a job and all its processes."""
    job.terminate()
    try:
        job.wait(_GRACE)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()


if __name__ == "__main__":
    sys.exit(main())
