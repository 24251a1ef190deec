"""Open sources. All opens of one source with the same options share one server."""

from __future__ import annotations

import atexit
import http.client
import json
import os
import threading
import weakref
from collections import OrderedDict
from typing import Any, Dict, List, NamedTuple, Optional, Tuple
from urllib.parse import unquote

from .errors import Error, NotDirectoryError
from .location import SourceName, locate
from .server import Server

Key = Tuple[str, Tuple[Tuple[str, str], ...]]

# Sources that stay open after an unpickled object has used them, so that each task of a worker
# process does not start its own server.
KEPT_SOURCES = 8


class Entry(NamedTuple):
    """A name in a directory of a source. The size is known for files only, and only for some."""

    name: str
    is_directory: bool
    size: Optional[int] = None


class Registry:
    """The servers of this process, and how many open sources use each."""

    def __init__(self) -> None:
        # A finalizer may run in a thread that already holds the lock.
        self.lock = threading.RLock()
        self.servers: Dict[Key, Tuple[Server, int]] = {}
        self.starts: Dict[Key, threading.Lock] = {}
        self.kept: OrderedDict[Key, Source] = OrderedDict()

    def acquire(self, key: Key, source: str, options: Dict[str, object]) -> Server:
        """Returns the running server for this key, or starts one. Servers of other keys may start
        at the same time."""
        with self.lock:
            start = self.starts.setdefault(key, threading.Lock())
        with start:
            with self.lock:
                server, users = self.servers.get(key, (None, 0))
                if server is not None and server.is_running:
                    self.servers[key] = (server, users + 1)
                    return server
            started = Server(source, options)
            with self.lock:
                # The sources of a server that has died still release it.
                self.servers[key] = (started, 1)
        return started

    def release(self, key: Key, released: Server) -> None:
        """Ends the server if no other source uses it."""
        # A forked process must not wait for a lock that its parent held.
        if released.owner != os.getpid():
            return
        with self.lock:
            server, users = self.servers.get(key, (None, 0))
            if server is released and users > 1:
                self.servers[key] = (released, users - 1)
                return
            if server is released:
                del self.servers[key]
        # Also if another server has replaced it, because it has died.
        released.stop()

    def stop_all(self) -> None:
        with self.lock:
            servers = [server for server, _ in self.servers.values()]
            self.servers.clear()
            self.kept.clear()
        for server in servers:
            server.stop()


_registry = Registry()


def _stop_servers() -> None:
    _registry.stop_all()


def _forget_servers() -> None:
    """Forgets the servers of the parent process. A forked process starts its own."""
    global _registry
    _registry = Registry()


atexit.register(_stop_servers)
os.register_at_fork(after_in_child=_forget_servers)


class Source:
    """An open source: a file, a directory, or a URL. `close` or the end of a `with` block releases
    the server; the last release ends the server.

    A path of a method names an entry as in a mount: `surface/temperature`,
    `.h5fs/csv/stations.csv`. A source may be pickled; a process that unpickles it, and a forked
    process, use a server of their own."""

    def __init__(self, location: str, data_file: str, options: Dict[str, object]) -> None:
        self.location = location
        # The path of the data file in the source, empty or with a slash at its end.
        self.data_file = data_file
        self.options = options
        self._key: Key = (location, tuple((name, repr(options[name])) for name in sorted(options)))
        self._release: Any = None
        self._server: Optional[Server] = None
        self._acquire()

    def _acquire(self) -> Server:
        registry = _registry
        server = registry.acquire(self._key, self.location, self.options)
        self._server = server
        self._release = weakref.finalize(self, registry.release, self._key, server)
        self._release.atexit = False
        return server

    @property
    def server(self) -> Server:
        server = self._server
        if server is None:
            raise Error(f"{self.location}: closed")
        if server.owner != os.getpid():
            server = self._acquire()
        return server

    @property
    def is_running(self) -> bool:
        """Whether the server of this source runs."""
        return self._server is not None and self.server.is_running

    def close(self) -> None:
        self._server = None
        self._release()

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<h5fs.Source {self.location!r}>"

    def __reduce__(self) -> Tuple[Any, ...]:
        return _kept_source, (self.location, self.data_file, self.options)

    def read(self, path: str, start: int = 0, end: Optional[int] = None) -> bytes:
        """Returns the bytes of a file, or its bytes from `start` to `end`."""
        if end is not None and end <= start:
            return b""
        headers = {}
        if start or end is not None:
            headers["Range"] = f"bytes={start}-{'' if end is None else end - 1}"
        with self.server.request(path, headers) as response:
            try:
                content = response.read()
            except (http.client.IncompleteRead, ConnectionError) as error:
                raise self._cut_off(path) from error
        if response.status == 416:
            return b""
        # A text whose size is not known is sent as a whole.
        return content if response.status == 206 else content[start:end]

    def read_into(self, path: str, buffer: memoryview, start: int = 0) -> None:
        """Fills the buffer with the bytes of a file from `start`."""
        headers = {"Range": f"bytes={start}-{start + len(buffer) - 1}"}
        with self.server.request(path, headers) as response:
            filled = 0
            try:
                while filled < len(buffer):
                    count = response.readinto(buffer[filled:])
                    if not count:
                        break
                    filled += count
            except (http.client.IncompleteRead, ConnectionError) as error:
                raise self._cut_off(path) from error
            if filled < len(buffer) or response.status != 206:
                raise self._cut_off(path)
            response.read()

    def _cut_off(self, path: str) -> Error:
        """Returns the exception for a response that ended early: a part of the file could not be
        read, or the server has ended."""
        if not self.server.is_running:
            return self.server.end_error()
        try:
            lines = self.read(".h5fs/errors").decode(errors="replace").splitlines()
        except OSError:
            lines = []
        # A line is a time, the object, and the reason. The last one is of this response, unless
        # another thread has just read another damaged part.
        reason = lines[-1].split(" ", 1)[-1] if lines else "the response ended early"
        return Error(f"{path}: {reason}")

    def read_json(self, path: str) -> Any:
        return json.loads(self.read(path))

    def list(self, path: str = "") -> List[Entry]:
        """Returns the entries of a directory. A link to a directory is a directory."""
        path = path.strip("/")
        target = f"{path}/" if path else "?list"
        with self.server.request(target, {"Accept": "application/json"}) as response:
            kind = response.headers.get_content_type()
            content = response.read()
        if kind != "application/json" or response.status != 200:
            raise NotDirectoryError(f"{path}: not a directory")
        entries = []
        for entry in json.loads(content):
            if entry["kind"] == "symlink":
                try:
                    entries.append(self.info(f"{path}/{entry['name']}".lstrip("/")))
                except Error:
                    continue
            else:
                is_directory = entry["kind"] == "directory"
                entries.append(Entry(entry["name"], is_directory, entry.get("size")))
        return entries

    def info(self, path: str) -> Entry:
        """Returns the kind of an entry, and the size of a file."""
        path = path.strip("/")
        name = path.rsplit("/", 1)[-1]
        if not path:
            return Entry(name, True)
        with self.server.request(path, method="HEAD") as response:
            response.read()
            is_directory = unquote(response.headers.get("Location", "")).endswith("/")
            length = response.headers.get("Content-Length")
        return Entry(name, is_directory, int(length) if length and not is_directory else None)


def _kept_source(location: str, data_file: str, options: Dict[str, object]) -> Source:
    """Returns the source that this process keeps open for unpickled objects."""
    key: Key = (location + "\0" + data_file, tuple((n, repr(options[n])) for n in sorted(options)))
    registry = _registry
    with registry.lock:
        source = registry.kept.get(key)
    if source is None or not source.is_running:
        source = Source(location, data_file, options)
    with registry.lock:
        registry.kept[key] = source
        registry.kept.move_to_end(key)
        surplus = [
            registry.kept.popitem(last=False) for _ in range(len(registry.kept) - KEPT_SOURCES)
        ]
    # An array that still uses a surplus source keeps it open.
    del surplus
    return source


def open(source: SourceName, **options: object) -> Source:
    """Opens a source: the path of an HDF5 or ASDF file, its URL, a directory of such files, or a
    list of files in one directory. `options` are the long options of `h5fs serve`, with `_` for
    `-`: `h5fs.open("run.h5", cache_size="256M")`."""
    location = locate(source)
    return Source(location.source, location.data_file, options)
