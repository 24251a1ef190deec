"""Work in processes of its own, and its time."""

import importlib.util
import os
import shutil
import signal
import subprocess
import traceback
from time import perf_counter


def there(needed):
    """Whether there is such a command, or such a module of Python."""
    return shutil.which(needed) is not None or importlib.util.find_spec(needed) is not None


def timed(*command):
    """The seconds of a command whose output nobody wants."""
    began = perf_counter()
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return perf_counter() - began


def cat(path):
    return timed("cat", path)


def forget(path):
    """Takes a file out of the page cache: as reading brings it there again, in large pieces, it is
    read faster than as written."""
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def cat_again(path):
    """The seconds of the second `cat`: a page that is read a second time costs the kernel more than
    later."""
    forget(path)
    cat(path)
    return cat(path)


def alone(function, *arguments):
    """Calls it in a child process that ends with it, so that no cache is left for the next; answers
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
