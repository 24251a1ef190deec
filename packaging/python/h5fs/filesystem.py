"""The fsspec filesystem `h5fs`: the paths of a mount, for pandas, polars, pyarrow and DuckDB.

The source is the next URL of a chain, `h5fs://.h5fs/parquet/t.parquet::s3://bucket/x.h5`, or the
argument `fo`: `fsspec.filesystem("h5fs", fo="x.h5")`."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from typing import Any, Dict, List, Optional, Union

from fsspec.spec import (  # type: ignore[import-untyped]
    AbstractBufferedFile,
    AbstractFileSystem,
)

from .errors import Error
from .location import SourceName
from .source import Entry, Source
from .source import open as open_source

# The options of other filesystems of fsspec, and the options of the program that mean the same.
TARGET_OPTIONS = {
    "anon": "anonymous",
    "endpoint_url": "endpoint",
    "profile": "profile",
    "requester_pays": "requester_pays",
}

# Arguments of `AbstractFileSystem` itself.
FSSPEC_OPTIONS = (
    "asynchronous",
    "dircache",
    "listings_expiry_time",
    "loop",
    "max_paths",
    "skip_instance_cache",
    "use_listings_cache",
)

# Threads that request the ranges of one `cat_ranges`.
REQUESTS = 8


def target_source(fo: SourceName, protocol: Optional[str]) -> SourceName:
    """Returns the source for the rest of a chain. fsspec has removed the protocol of most URLs."""
    if not isinstance(fo, str) or protocol in (None, "", "file", "local") or "://" in fo:
        return fo
    return f"{protocol}://{fo}"


def translate_options(options: Dict[str, Any]) -> Dict[str, Any]:
    """Returns the program's options for the options of the source's filesystem."""
    translated = {}
    for name, value in options.items():
        if name not in TARGET_OPTIONS:
            raise Error(f"the option {name} is unknown: give h5fs the options of `h5fs serve`")
        translated[TARGET_OPTIONS[name]] = value
    return translated


class H5fsFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """All paths that `h5fs serve` serves for a source, for reading.

    `options` are the long options of the program. `fo` is the source. `target_protocol` and
    `target_options` are what fsspec passes for the source of a chain."""

    protocol = "h5fs"
    root_marker = ""

    def __init__(
        self,
        fo: Optional[SourceName] = None,
        target_protocol: Optional[str] = None,
        target_options: Optional[Dict[str, Any]] = None,
        **options: Any,
    ) -> None:
        own = {name: options.pop(name) for name in FSSPEC_OPTIONS if name in options}
        super().__init__(**own)
        if fo is None or fo == "":
            raise Error("no source: use h5fs://PATH::SOURCE, or fo=SOURCE")
        self._source_name = target_source(fo, target_protocol)
        self._options = {**translate_options(target_options or {}), **options}
        self._source: Optional[Source] = None
        self._lock = threading.Lock()
        self._opened = time.time()

    @property
    def source(self) -> Source:
        """The open source. It is opened again if its server has ended."""
        with self._lock:
            if self._source is None or not self._source.is_running:
                self._source = open_source(self._source_name, **self._options)
            return self._source

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        path = os.fspath(path)
        if path.startswith("h5fs://"):
            path = path[len("h5fs://") :]
        return path.split("::", 1)[0].strip("/")

    def ls(self, path: str, detail: bool = True, **_: Any) -> List[Any]:
        path = self._strip_protocol(path)
        try:
            entries = self.source.list(path)
        except NotADirectoryError:
            entries = [self.source.info(path)]
            path = self._parent(path)
        found = [details(f"{path}/{entry.name}".lstrip("/"), entry) for entry in entries]
        return found if detail else [entry["name"] for entry in found]

    def info(self, path: str, **_: Any) -> Dict[str, Any]:
        path = self._strip_protocol(path)
        return details(path, self.source.info(path))

    def cat_file(
        self, path: str, start: Optional[int] = None, end: Optional[int] = None, **_: Any
    ) -> bytes:
        path = self._strip_protocol(path)
        if (start or 0) < 0 or (end or 0) < 0:
            size = self.info(path)["size"]
            start = max(0, size + start) if start is not None and start < 0 else start
            end = max(0, size + end) if end is not None and end < 0 else end
        return self.source.read(path, start or 0, end)

    def cat_ranges(
        self,
        paths: List[str],
        starts: Any,
        ends: Any,
        max_gap: Optional[int] = None,
        on_error: str = "return",
        **_: Any,
    ) -> List[Union[bytes, Exception]]:
        count = len(paths)
        starts = starts if isinstance(starts, (list, tuple)) else [starts] * count
        ends = ends if isinstance(ends, (list, tuple)) else [ends] * count

        def read(path: str, start: Optional[int], end: Optional[int]) -> Union[bytes, Exception]:
            try:
                return self.cat_file(path, start, end)
            except OSError as error:
                if on_error == "return":
                    return error
                raise

        with ThreadPoolExecutor(REQUESTS) as executor:
            return list(executor.map(read, paths, starts, ends))

    def _open(self, path: str, mode: str = "rb", **options: Any) -> H5fsFile:
        if mode != "rb":
            raise Error(f"{path}: h5fs never writes")
        return H5fsFile(self, self._strip_protocol(path), mode, **options)

    def modified(self, path: str) -> datetime:
        """Returns the time of the source's last change, or, for a URL, the time of its opening.
        The server gives no times."""
        try:
            seconds = os.stat(self.source.location).st_mtime
        except OSError:
            seconds = self._opened
        return datetime.fromtimestamp(seconds, timezone.utc)


class H5fsFile(AbstractBufferedFile):  # type: ignore[misc]
    """An open file. fsspec buffers its reads."""

    def __init__(self, fs: H5fsFileSystem, path: str, mode: str, **options: Any) -> None:
        options.pop("size", None)
        size = fs.info(path)["size"]
        if size is None:
            raise IsADirectoryError(f"{path}: is a directory")
        super().__init__(fs, path, mode, size=size, **options)

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self.fs.cat_file(self.path, start, end)  # type: ignore[no-any-return]


def details(path: str, entry: Entry) -> Dict[str, Any]:
    """Returns the description of an entry in fsspec's form."""
    kind = "directory" if entry.is_directory else "file"
    return {"name": path, "type": kind, "size": entry.size}
