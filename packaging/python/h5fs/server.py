"""One `h5fs serve` process on a Unix socket, and the connections to it."""

from __future__ import annotations

import http.client
import os
import secrets
import socket
import tempfile
import threading
import time
from contextlib import contextmanager
from typing import Dict, Iterator, List, Optional
from urllib.parse import quote

from .child import end_child, start_child
from .errors import ServerEndedError, program_error, response_error
from .program import checked_program, option_arguments

# Connections that are kept open for later requests.
IDLE_CONNECTIONS = 16

# Bytes that the path of a Unix socket may have.
SOCKET_PATH = 107

# Seconds before each further attempt, if the server answers 503 (the source has just changed).
PAUSES = [0.05, 0.2, 1.0]

CONNECTION_ERRORS = (ConnectionError, FileNotFoundError, http.client.BadStatusLine)


class UnixConnection(http.client.HTTPConnection):
    """An HTTP connection to a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.path)


class Server:
    """A running `h5fs serve` process."""

    def __init__(self, source: str, options: Dict[str, object]) -> None:
        self.source = source
        self.socket_path = new_socket_path()
        self._idle: List[UnixConnection] = []
        self._lock = threading.Lock()
        self._stopped = False
        self.owner = os.getpid()
        self._standard_error = tempfile.TemporaryFile()
        listen = ["--listen", f"unix:{self.socket_path}", "--no-token"]
        command = [checked_program(), "serve", *listen, *option_arguments(options), "--", source]
        self.child = start_child(command, self._standard_error)
        assert self.child.stdout
        # The server prints its URL when it answers requests.
        if not self.child.stdout.readline():
            error = program_error(self._standard_error, f"{source}: the server did not start")
            self.stop()
            raise error

    @property
    def is_running(self) -> bool:
        """Whether this process has started the server, and the server runs."""
        if self.owner != os.getpid() or self._stopped:
            return False
        return self.child.poll() is None

    def stop(self) -> None:
        """Ends the server, and closes everything that belongs to it. A forked process does not end
        the server of its parent."""
        if self.owner != os.getpid():
            return
        with self._lock:
            self._stopped = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        end_child(self.child)
        self._standard_error.close()
        self._remove_socket()

    def _remove_socket(self) -> None:
        """Removes the socket of a server that was killed. Any other server removes it itself."""
        try:
            os.unlink(self.socket_path)
        except FileNotFoundError:
            pass

    @contextmanager
    def request(
        self, path: str, headers: Optional[Dict[str, str]] = None, method: str = "GET"
    ) -> Iterator[http.client.HTTPResponse]:
        """Sends a request. Yields the response, whose status is below 400 or is 416."""
        target = "/" + quote(os.fsencode(path)) if path[:1] != "?" else "/" + path
        for pause in [*PAUSES, None]:
            connection, response = self._send(method, target, headers or {})
            if response.status == 503 and pause is not None:
                response.read()
                self._keep(connection)
                time.sleep(pause)
                continue
            try:
                if response.status >= 400 and response.status != 416:
                    reason = response.read().decode(errors="replace")
                    raise response_error(response.status, path, reason)
                yield response
            finally:
                self._keep(connection) if response.isclosed() else connection.close()
            return

    def _send(
        self, method: str, target: str, headers: Dict[str, str]
    ) -> tuple[UnixConnection, http.client.HTTPResponse]:
        """Sends a request on an idle connection, or on a new one if the server has closed the idle
        connection. Fails if the server has ended, even if a part of it still answers."""
        if not self.is_running:
            raise self.end_error()
        while True:
            with self._lock:
                is_idle = bool(self._idle)
                connection = self._idle.pop() if is_idle else UnixConnection(self.socket_path)
            try:
                connection.request(method, target, headers=headers)
                return connection, connection.getresponse()
            except CONNECTION_ERRORS as error:
                connection.close()
                if not is_idle:
                    raise self.end_error() from error
            except BaseException:
                connection.close()
                raise

    def _keep(self, connection: UnixConnection) -> None:
        """Keeps a connection for the next request, or closes it."""
        with self._lock:
            if connection.sock and not self._stopped and len(self._idle) < IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()

    def end_error(self) -> ServerEndedError:
        """Returns the exception for a server that no longer answers."""
        if self._stopped:
            return ServerEndedError(f"{self.source}: closed")
        # The process may still be about to end.
        try:
            status: object = self.child.wait(1.0)
        except Exception:
            status = "none"
        self._remove_socket()
        text = f"the server has ended with status {status}"
        error = program_error(self._standard_error, text)
        detail = "" if str(error) == text else f": {error}"
        return ServerEndedError(f"{self.source}: {text}{detail}")


def new_socket_path() -> str:
    """Returns the path of a socket that does not exist. The server makes the socket such that only
    its owner can connect, and refuses an existing path."""
    name = f"h5fs-{secrets.token_hex(12)}.sock"
    path = os.path.join(tempfile.gettempdir(), name)
    return path if len(os.fsencode(path)) <= SOCKET_PATH else os.path.join("/tmp", name)
