"""The engine `h5fs` of xarray. It opens HDF5, netCDF-4 and ASDF files, URLs, and directories or
lists of files as one file.

The engine reads chunks of the Zarr store that h5fs computes (`.h5fs/file.zarr`). xarray itself
decodes them by the CF conventions, as for its other engines."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, Iterable, List, Optional, Tuple

import xarray
from xarray.backends import AbstractDataStore, BackendArray, BackendEntrypoint
from xarray.backends.store import StoreBackendEntrypoint
from xarray.core import indexing

from .chunked_array import ChunkedArray
from .errors import Error, NotFoundError
from .source import Source
from .source import open as open_source
from .typed_attributes import add_text_fill_value, attributes, storage_encoding

DECODERS = (
    "mask_and_scale",
    "decode_times",
    "concat_characters",
    "decode_coords",
    "drop_variables",
    "use_cftime",
    "decode_timedelta",
)


def plain_name(name: str) -> str:
    """Returns the name of a variable for its name in the store. A slash in a name stays `%2F`, as
    in the mount, because xarray has no names with a slash."""
    return name.replace("%5C", "\\")


def dimension_names(stored: List[str], described: List[Any]) -> Tuple[str, ...]:
    """Returns the names of an array's dimensions. Zarr forbids equal names, so the store has
    `x`, `x_1` for an array over `x` and `x`. The NDL shape has the names of the file."""
    names = list(stored)
    for axis, dimension in enumerate(described[: len(names)]):
        if isinstance(dimension, str):
            name = dimension.rsplit("/", 1)[-1]
            if re.fullmatch(re.escape(name) + r"_\d+", names[axis]):
                names[axis] = name
    return tuple(names)


class LazyArray(BackendArray):
    """An array of the store, of which xarray reads selections when values are needed."""

    def __init__(self, array: ChunkedArray) -> None:
        self.chunked = array
        self.shape = array.shape
        self.dtype = array.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        support = indexing.IndexingSupport.OUTER
        return indexing.explicit_indexing_adapter(
            key, self.shape, support, self.chunked.__getitem__
        )


class GroupStore(AbstractDataStore):
    """The variables and attributes of one group. Closing it releases its source, if it owns the
    source."""

    def __init__(self, source: Source, group: str, owns_source: bool = True) -> None:
        self.source = source
        self.group = group.strip("/")
        self.owns_source = owns_source
        self.path = f"{source.data_file}.h5fs/file.zarr/{self.group}".rstrip("/")
        try:
            self.document = source.read_json(f"{self.path}/zarr.json")
        except NotFoundError as error:
            raise NotFoundError(f"{source.location}: no group {group!r}") from error
        if self.document["node_type"] != "group":
            raise Error(f"{source.location}: {group!r} is not a group")
        self.description = self._read_description()

    def _read_description(self) -> Dict[str, Any]:
        """Returns the NDL description of the group. A description that is too long or damaged is
        empty: attributes then have the types of JSON."""
        views = f"{self.source.data_file}.h5fs"
        path = f"{views}/ndl/{self.group}.json" if self.group else f"{views}/tree.json"
        try:
            described: Dict[str, Any] = self.source.read_json(path).get(f"/{self.group}", {})
        except (Error, ValueError):
            return {}
        return described

    def documents(self) -> Dict[str, Any]:
        """Returns the metadata documents of all objects below the group, by their paths."""
        consolidated = self.document.get("consolidated_metadata")
        if consolidated:
            return dict(consolidated["metadata"])
        found: Dict[str, Any] = {}
        self._collect(self.path, "", found)
        return found

    def _collect(self, directory: str, prefix: str, found: Dict[str, Any]) -> None:
        for entry in self.source.list(directory):
            if not entry.is_directory:
                continue
            path = f"{directory}/{entry.name}"
            document = self.source.read_json(f"{path}/zarr.json")
            found[prefix + entry.name] = document
            if document["node_type"] == "group":
                self._collect(path, f"{prefix}{entry.name}/", found)

    def groups(self) -> Iterable[str]:
        """Yields the paths of this group and of all groups below it, relative to this group."""
        yield ""
        for path, document in self.documents().items():
            if document["node_type"] == "group":
                yield path

    def get_variables(self) -> Dict[str, xarray.Variable]:
        found = {}
        for path, document in self.documents().items():
            if "/" not in path and document["node_type"] == "array":
                found[plain_name(path)] = self._variable(path, document)
        return found

    def _variable(self, name: str, document: Dict[str, Any]) -> xarray.Variable:
        inside = f"{self.group}/{name}".lstrip("/")
        view = f"{self.source.data_file}.h5fs/npy/{inside}"
        array = ChunkedArray(self.source, f"{self.path}/{name}", view, document)
        entry = self._described(name)
        described = entry.get("attributes", {})
        dims = dimension_names(document["dimension_names"], entry.get("shape", []))
        encoding = storage_encoding(entry, dims, array.dtype)
        if encoding["chunksizes"]:
            encoding["preferred_chunks"] = dict(zip(dims, encoding["chunksizes"]))
        encoding["source"] = self.source.location
        encoding["original_shape"] = array.shape
        data = indexing.LazilyIndexedArray(LazyArray(array))
        typed = attributes(document["attributes"], described)
        add_text_fill_value(typed, described, array.dtype)
        return xarray.Variable(dims, data, typed, encoding)

    def _described(self, name: str) -> Dict[str, Any]:
        for kind in ("ndarrays", "dimcoords"):
            for stored in (name, f"_nc4_non_coord_{name}"):
                entry = self.description.get(kind, {}).get(stored)
                if isinstance(entry, dict):
                    return entry
        return {}

    def get_attrs(self) -> Dict[str, Any]:
        return attributes(self.document["attributes"], self.description.get("attributes", {}))

    def get_encoding(self) -> Dict[str, Any]:
        scales = self.description.get("dimcoords", {})
        unlimited = {name for name, scale in scales.items() if scale.get("size", 0) is None}
        return {"unlimited_dims": unlimited, "source": self.source.location}

    def close(self) -> None:
        if self.owns_source:
            self.source.close()


class H5fsBackendEntrypoint(BackendEntrypoint):
    """The engine `h5fs`. Further keyword arguments of `xarray.open_dataset` are the long options
    of `h5fs serve`, with `_` for `-`."""

    description = "Open HDF5, netCDF-4 and ASDF files, and many of them as one, with h5fs"
    url = "https://pypi.org/project/h5fs/"
    supports_groups = True
    open_dataset_parameters = ("filename_or_obj", *DECODERS, "group")

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Returns whether xarray should choose this engine: only for ASDF, which no other engine
        of xarray reads."""
        if isinstance(filename_or_obj, (str, os.PathLike)):
            return os.fspath(filename_or_obj).endswith(".asdf")
        return isinstance(filename_or_obj, Source)

    def open_dataset(
        self, filename_or_obj: Any, *, group: Optional[str] = None, **options: Any
    ) -> xarray.Dataset:
        decoders = {name: options.pop(name) for name in DECODERS if name in options}
        source, owns_source = opened(filename_or_obj, options)
        try:
            store = GroupStore(source, group or "", owns_source)
            return StoreBackendEntrypoint().open_dataset(store, **decoders)
        except BaseException:
            if owns_source:
                source.close()
            raise

    def open_groups_as_dict(
        self, filename_or_obj: Any, *, group: Optional[str] = None, **options: Any
    ) -> Dict[str, xarray.Dataset]:
        decoders = {name: options.pop(name) for name in DECODERS if name in options}
        source, owns_source = opened(filename_or_obj, options)
        top = (group or "").strip("/")
        try:
            datasets = {}
            for path in GroupStore(source, top, False).groups():
                inner = f"{top}/{path}".strip("/")
                # The root's dataset closes the source of all groups.
                store = GroupStore(source, inner, owns_source and not path)
                name = "/" + "/".join(plain_name(part) for part in path.split("/"))
                datasets[name] = StoreBackendEntrypoint().open_dataset(store, **decoders)
            return datasets
        except BaseException:
            if owns_source:
                source.close()
            raise

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> xarray.DataTree:
        datasets = self.open_groups_as_dict(filename_or_obj, **options)
        tree = xarray.DataTree.from_dict(datasets)
        for name, dataset in datasets.items():
            tree[name].set_close(dataset._close)
        return tree


def opened(source: Any, options: Dict[str, Any]) -> Tuple[Source, bool]:
    """Returns the open source, and whether the caller must close it."""
    if isinstance(source, Source):
        return source, False
    return open_source(source, **options), True
