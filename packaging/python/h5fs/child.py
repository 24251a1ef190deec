"""Child processes that end with this process, also if it is killed."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from concurrent.futures import Future
from typing import IO, List, Optional, Tuple

# The first program of a child. It requests SIGTERM for the death of its parent (PR_SET_PDEATHSIG
# is 1), and then becomes h5fs. `preexec_fn` could do the same, but is unsafe if threads run.
TRAMPOLINE = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 15)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""

# The seconds that a child has after SIGTERM before it is killed.
PATIENCE = 10.0

Request = Tuple["Future[subprocess.Popen[bytes]]", List[str], IO[bytes]]


class Starter:
    """A thread that starts children and lives as long as this process. The kernel signals a child
    when the thread that started it ends, so no other thread may start one."""

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="h5fs-starter", daemon=True).start()

    def _run(self) -> None:
        while True:
            future, command, standard_error = self._requests.get()
            try:
                future.set_result(spawn(command, standard_error))
            except BaseException as error:
                future.set_exception(error)

    def start(self, command: List[str], standard_error: IO[bytes]) -> subprocess.Popen[bytes]:
        """Starts a child. Its standard output is a pipe."""
        future: Future[subprocess.Popen[bytes]] = Future()
        self._requests.put((future, command, standard_error))
        return future.result()


def spawn(command: List[str], standard_error: IO[bytes]) -> subprocess.Popen[bytes]:
    """Starts a child of the calling thread, in a session of its own, so that an interrupt by
    Ctrl-C does not reach the child."""
    python = sys.executable or "python3"
    return subprocess.Popen(
        [python, "-I", "-S", "-c", TRAMPOLINE, str(os.getpid()), *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=standard_error,
        start_new_session=True,
    )


_starter: Optional[Starter] = None
_lock = threading.Lock()


def start_child(command: List[str], standard_error: IO[bytes]) -> subprocess.Popen[bytes]:
    """Starts a child that ends with this process."""
    global _starter
    with _lock:
        if _starter is None:
            _starter = Starter()
    return _starter.start(command, standard_error)


def end_child(child: subprocess.Popen[bytes]) -> None:
    """Ends a child, and waits for its end."""
    child.terminate()
    try:
        child.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    if child.stdout:
        child.stdout.close()


def _forget_after_fork() -> None:
    """Forgets the thread of the parent process, which does not exist in a forked process."""
    global _starter, _lock
    _starter = None
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)
