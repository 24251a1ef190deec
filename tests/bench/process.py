"""Runs work in separate processes, and measures its time."""

import importlib.util
import os
import shutil
import signal
import subprocess
import traceback
from time import perf_counter


def there(needed):
    """Returns whether a command or a Python module with this name exists."""
    return shutil.which(needed) is not None or importlib.util.find_spec(needed) is not None


def timed(*command):
    """Returns the seconds of a command. Discards its output."""
    began = perf_counter()
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return perf_counter() - began


def cat(path):
    return timed("cat", path)


def forget(path):
    """Removes a file from the page cache. Reading loads it again in large pieces, which can be read
    faster than pages that were written."""
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def cat_again(path):
    """Returns the seconds of the second `cat`. The kernel spends more time on the second read of a
    page than on later reads."""
    forget(path)
    cat(path)
    return cat(path)


def alone(function, *arguments):
    """Calls the function in a child process, so that no cache remains for the next call. Returns
    its number, if it has one."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.write(writer, repr(function(*arguments)).encode())
            code = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writer)
    try:
        with os.fdopen(reader) as answer:
            said = answer.read()
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    if os.waitpid(child, 0)[1]:
        raise RuntimeError(f"{function.__name__}{arguments} failed")
    return None if said == "None" else float(said)
