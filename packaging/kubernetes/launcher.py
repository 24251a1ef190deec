#!/usr/bin/env python3
"""launcher.py SOCKET MOUNTPOINT: a launcher for pods without privileges. It mounts FUSE at MOUNTPOINT
and passes the open /dev/fuse to the first program that connects to the Unix socket SOCKET. Unmounts
when this program has ended.

launcher.py --receive SOCKET PROGRAM [ARGUMENT…]: receives the device, and executes the program. `{}` in
an argument becomes the mount point /dev/fd/N. Needs no privileges."""

import array
import ctypes
import os
import select
import socket
import sys

MS_RDONLY, MS_NOSUID, MS_NODEV, MNT_DETACH = 1, 2, 4, 2

LIBC = ctypes.CDLL(None, use_errno=True)


def mount(device, mountpoint):
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions"
    flags = MS_RDONLY | MS_NOSUID | MS_NODEV
    if LIBC.mount(b"h5fs", os.fsencode(mountpoint), b"fuse.h5fs", flags, options.encode()):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), mountpoint)


def launch(path, mountpoint):
    os.makedirs(mountpoint, exist_ok=True)
    if os.path.exists(path):
        os.unlink(path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        os.chmod(path, 0o666)
        listening.listen()
        while True:
            device = os.open("/dev/fuse", os.O_RDWR)
            mount(device, mountpoint)
            try:
                connection, _ = listening.accept()
                with connection:
                    fds = array.array("i", [device])
                    connection.sendmsg([b"m"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
                    os.close(device)
                    # The program keeps the connection open until it ends.
                    select.select([connection], [], [])
            finally:
                LIBC.umount2(os.fsencode(mountpoint), MNT_DETACH)


def receive(path, *command):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    size = array.array("i", [0]).itemsize
    _, control, _, _ = connection.recvmsg(1, socket.CMSG_SPACE(size))
    (device,) = array.array("i", control[0][2])
    # The end of the connection is the end of the program.
    os.set_inheritable(connection.fileno(), True)
    os.set_inheritable(device, True)
    command = [argument.replace("{}", f"/dev/fd/{device}") for argument in command]
    os.execvp(command[0], command)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--receive"]:
        receive(*sys.argv[2:])
    else:
        launch(*sys.argv[1:])
