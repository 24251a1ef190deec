"""The exceptions of this package. The text of each is the line that the program prints."""

from __future__ import annotations

from typing import IO


class Error(OSError):
    """An error of the program h5fs, or of a request to its server."""


class NotFoundError(Error, FileNotFoundError):
    """A source, or a path in a source, that does not exist."""


class AccessError(Error, PermissionError):
    """A source or a path that the user may not read."""


class NotDirectoryError(Error, NotADirectoryError):
    """A path that is a file, and is used as a directory."""


class ServerEndedError(Error):
    """The end of a server, for example because another process killed it. The next open starts
    another server."""


PREFIX = "h5fs: "

# Beginnings of lines that are not errors.
NOTES = ("h5fs: listening on ", "h5fs: warning: ")

# Endings of the program's lines, and the exceptions that Python users expect for them.
ENDINGS = {
    "no such file or directory": NotFoundError,
    "not a directory": NotDirectoryError,
    "permission denied": AccessError,
}


def typed_error(text: str) -> Error:
    """Returns the exception with this text."""
    for ending, error in ENDINGS.items():
        if text.lower().endswith(ending):
            return error(text)
    return Error(text)


def program_error(standard_error: IO[bytes], fallback: str) -> Error:
    """Returns the exception for the last line in this file, which is the program's standard error.
    If the file is empty, the text of the exception is `fallback`."""
    standard_error.seek(0)
    lines = standard_error.read().decode(errors="replace").splitlines()
    lines = [line for line in lines if not line.startswith(NOTES)]
    line = lines[-1] if lines else fallback
    return typed_error(line[len(PREFIX) :] if line.startswith(PREFIX) else line)


def response_error(status: int, path: str, reason: str) -> Error:
    """Returns the exception for an HTTP response with this status. `reason` is its body."""
    lines = reason.strip().splitlines()
    error = typed_error(f"{path or '/'}: {lines[0] if lines else f'HTTP status {status}'}")
    if type(error) is Error and status in (403, 404):
        return (AccessError if status == 403 else NotFoundError)(str(error))
    return error
