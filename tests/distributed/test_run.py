"""Jobs that fail, hang or are interrupted end soon, wholly, and with a code and a traceback."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from functrans.distributed import run

LAUNCHER = [sys.executable, "-m", "functrans.distributed.run"]
PROGRAM = Path(__file__).with_name("programs") / "fails.py"


@pytest.fixture
def launch(run_group, tmp_path):
    """``launch(how, *options)`` runs a program of `fails.py`, and checks that no process is left."""

    def started(how, *options, n=2):
        command = [*LAUNCHER, "-n", n, *options, PROGRAM, how, tmp_path / "pid"]
        done = run_group(command, timeout=40, RANKS=str(n))
        nothing_left(tmp_path)
        return done

    return started


def nothing_left(folder):
    pids = [int(path.suffix[1:]) for path in folder.glob("pid.*")]
    assert pids
    until = time.monotonic() + 5
    while left := [pid for pid in pids if is_alive(pid)]:
        assert time.monotonic() < until, left
        time.sleep(0.05)


def is_alive(pid):
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def test_a_rank_that_raises_ends_the_job(launch):
    done = launch("raises")
    assert done.returncode == 1
    assert "in raises\n" in done.stderr
    assert "KeyError: 'of rank 1'" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "code", "text"),
    [
        ("raises_pending", 1, "KeyError: 'of rank 1'"),
        ("raises_busy", 1, "KeyError: 'of rank 1'"),
        ("exits", 7, ""),
        ("killed", signal.SIGKILL, ""),
        ("forgets", 1, "rank 1 ends while collectives over 'dp' have not ended"),
        ("differs", 1, "rank 0: all_gather float64[2]\n  rank 1: all_reduce float64[3] sum"),
        ("leaves", 0, ""),
    ],
)
def test_ends(launch, how, code, text):
    done = launch(how, n=3)
    assert done.returncode == code, done.stderr
    assert text in done.stderr
    if code == 0:
        assert done.stdout.count("end") == 3


@pytest.mark.slow
def test_timeout(launch):
    done = launch("sleeps", "--timeout", 4)
    assert done.returncode == run.TIMED_OUT
    assert "not done after 4 s" in done.stderr
    assert done.stdout.count("asleep") == 2


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_passed_on(tmp_path, number):
    command = [*LAUNCHER, "-n", "2", str(PROGRAM), "sleeps", str(tmp_path / "pid")]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert [job.stdout.readline() for _ in range(2)] == ["asleep\n"] * 2
        job.send_signal(number)
        assert job.wait(20) == 128 + number
        nothing_left(tmp_path)
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
        job.stdout.close()


@pytest.mark.slow
def test_without_mpi4py_as_the_module_an_exception_ends_the_job_too(run_group, tmp_path):
    mpiexec = Path(sys.executable).with_name("mpiexec")
    done = run_group([mpiexec, "-n", 2, sys.executable, PROGRAM, "raises", tmp_path / "pid"], timeout=30)
    assert done.returncode == 1
    assert "KeyError: 'of rank 1'" in done.stderr
    nothing_left(tmp_path)


def test_ranks_share_the_cores(monkeypatch):
    monkeypatch.setattr(run, "usable_cores", lambda: 8)
    monkeypatch.setattr(run, "_is_open_mpi", lambda _: True)
    assert run.environment(2, "", {})["OMP_NUM_THREADS"] == "4"
    assert run.environment(16, "", {})["NUMBA_NUM_THREADS"] == "1"
    assert run.environment(16, "", {"OMP_NUM_THREADS": "3"})["OMP_NUM_THREADS"] == "3"
    assert run.environment(16, "", {})["PRTE_MCA_rmaps_default_mapping_policy"] == ":oversubscribe"


def test_what_is_missing_is_named(monkeypatch, capsys):
    monkeypatch.setattr(run, "find_mpiexec", lambda: None)
    assert run.main(["-n", "2", "script.py"]) == 2
    assert "mpiexec is not beside" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run.main(["-n", "0", "script.py"])
    with pytest.raises(SystemExit):
        run.main(["-n", "2"])
