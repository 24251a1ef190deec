#!/usr/bin/env python3
"""refusals.py H5FS SECONDS [LEAST]: every call that would change the mount is refused and has no
effect."""

import ctypes
import errno
import hashlib
import mmap
import os

import mounted
import source

LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, RENAME_EXCHANGE = -100, 2
EVERYWHERE = ["chunked", "group", "link", ".h5fs/npy/chunked.npy", ".h5fs/attrs/group"]


def library(name, *arguments):
    """Calls a function of the C library that Python does not provide."""
    if getattr(LIBC, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), name)


def code_of(call):
    try:
        call()
    except OSError as error:
        return error.errno
    return 0


def by_path(mount):
    """Returns calls that would change the tree, by name. Each must fail with EROFS."""
    file, group, new = mount.at("chunked"), mount.at("group"), mount.at("group/new")
    raw = os.fsencode
    return {
        "open to write": lambda: os.open(file, os.O_WRONLY),
        "open to read and write": lambda: os.open(file, os.O_RDWR),
        "open to append": lambda: os.open(file, os.O_WRONLY | os.O_APPEND),
        "open to truncate": lambda: os.open(file, os.O_RDWR | os.O_TRUNC),
        "open to create": lambda: os.open(new, os.O_RDWR | os.O_CREAT),
        "O_TMPFILE": lambda: os.open(group, os.O_TMPFILE | os.O_RDWR),
        "mkdir": lambda: os.mkdir(new),
        "mknod": lambda: os.mknod(new),
        "mkfifo": lambda: os.mkfifo(new),
        "symlink": lambda: os.symlink("x", new),
        "link": lambda: os.link(file, new),
        "rename": lambda: os.rename(file, new),
        "rename over": lambda: os.rename(file, mount.at("contiguous")),
        "renameat2": lambda: library(
            "renameat2", AT_FDCWD, raw(file), AT_FDCWD, raw(mount.at("contiguous")), RENAME_EXCHANGE
        ),
        "unlink": lambda: os.unlink(file),
        "unlink of a link": lambda: os.unlink(mount.at("link")),
        "rmdir": lambda: os.rmdir(group),
        "truncate": lambda: os.truncate(file, 0),
        **{
            f"chmod {name}": lambda path=mount.at(name): os.chmod(path, 0o777)
            for name in EVERYWHERE
        },
        **{
            f"chown {name}": lambda path=mount.at(name): os.lchown(path, 1, 1)
            for name in EVERYWHERE
        },
        **{
            f"utimens {name}": lambda path=mount.at(name): os.utime(
                path, (0, 0), follow_symlinks=False
            )
            for name in EVERYWHERE
        },
        "setxattr": lambda: os.setxattr(file, "user.x", b"y"),
        "setxattr of what is there": lambda: os.setxattr(file, "user.h5fs.shape", b"y"),
        "removexattr": lambda: os.removexattr(file, "user.h5fs.shape"),
    }


def by_descriptor(descriptor, plain):
    """Returns calls on a descriptor that is open for reading, with the error of each. `plain` is a
    descriptor of an ordinary file."""
    return {
        "write": (lambda: os.write(descriptor, b"x"), errno.EBADF),
        "pwrite": (lambda: os.pwrite(descriptor, b"x", 0), errno.EBADF),
        "ftruncate": (lambda: os.ftruncate(descriptor, 0), errno.EINVAL),
        "fallocate": (lambda: os.posix_fallocate(descriptor, 0, 10), errno.EBADF),
        "fchmod": (lambda: os.fchmod(descriptor, 0o777), errno.EROFS),
        "fchown": (lambda: os.fchown(descriptor, 1, 1), errno.EROFS),
        "futimens": (lambda: os.utime(descriptor, (0, 0)), errno.EROFS),
        "fsetxattr": (lambda: os.setxattr(descriptor, "user.x", b"y"), errno.EROFS),
        "copy_file_range": (lambda: os.copy_file_range(plain, descriptor, 10, 0, 0), errno.EBADF),
        "sendfile": (lambda: os.sendfile(descriptor, plain, 0, 10), errno.EBADF),
        "mmap": (lambda: mmap.mmap(descriptor, 10, mmap.MAP_SHARED, mmap.PROT_WRITE), errno.EACCES),
    }


def digest(path):
    with open(path, "rb") as f:
        return (
            hashlib.file_digest(f, "sha256").hexdigest(),
            os.stat(path).st_mtime_ns,
            os.stat(path).st_ctime_ns,
        )


def refusals(h5fs, seconds, least):
    path, contents = source.write()
    before = digest(path)
    with mounted.Mount(h5fs, path) as mount:
        listing = sorted(os.listdir(mount.path))
        descriptor = os.open(mount.at("chunked"), os.O_RDONLY)
        plain = os.open("plain", os.O_RDWR | os.O_CREAT)
        os.write(plain, bytes(100))
        calls, others = by_path(mount), by_descriptor(descriptor, plain)
        for done in mounted.rounds(seconds, least):
            for name, call in calls.items():
                assert code_of(call) == errno.EROFS, (
                    f"{name}: {errno.errorcode.get(code_of(call), 'allowed')}"
                )
            for name, (call, wanted) in others.items():
                assert code_of(call) == wanted, (
                    f"{name}: {errno.errorcode.get(code_of(call), 'allowed')}"
                )
        mounted.say(
            f"{len(calls)} calls by path, each EROFS, and {len(others)} by descriptor, {done + 1} times"
        )
        os.close(descriptor)
        assert sorted(os.listdir(mount.path)) == listing
        for name, content in contents.items():
            with open(mount.at(name), "rb") as got:
                assert got.read() == content, name
        mount.check_memory(source.largest_chunk(), source.largest_chunk())
    assert digest(path) == before, "the source has changed"


if __name__ == "__main__":
    mounted.run(refusals, 100)
