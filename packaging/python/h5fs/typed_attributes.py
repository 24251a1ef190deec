"""Attributes and storage of variables, from the description of a group in the Ndarray Data
Language (NDL), which has types that the JSON of the Zarr store lacks."""

from __future__ import annotations

import base64
import math
from typing import Any, Dict, Optional

import numpy

# Attributes of the netCDF library and of dimension scales, which its readers do not show.
HIDDEN = {
    "CLASS",
    "DIMENSION_LIST",
    "NAME",
    "REFERENCE_LIST",
    "_NCProperties",
    "_Netcdf4Coordinates",
    "_Netcdf4Dimid",
    "_nc3_strict",
}

NAMES: Dict[Any, float] = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def numeric_type(entry: Dict[str, Any]) -> Optional[numpy.dtype[Any]]:
    """Returns the numpy type of an array or attribute, in the byte order of the file."""
    name = entry.get("type")
    if isinstance(name, dict) and "enum" in name:
        name = name["enum"]["base"]
    if not isinstance(name, str):
        return None
    try:
        dtype = numpy.dtype(name)
    except TypeError:
        return None
    if dtype.kind not in "iufc":
        return None
    is_big = entry.get("storage", {}).get("endian") == "big"
    stored = dtype.newbyteorder(">" if is_big else "<")
    return dtype if stored.isnative else stored


def typed_value(stored: Any, entry: Any) -> Any:
    """Returns the value of an attribute with its type in the file. `stored` is the value in the
    Zarr store, and `entry` is the NDL entry. NDL has exact texts and integers, but no NaN and no
    infinities. A value that is not a number or a text is the value of the store."""
    if isinstance(entry, str):
        return entry
    if not isinstance(entry, dict) or "value" not in entry:
        return stored
    value = entry["value"]
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if entry.get("type") == "string":
        return stored if value is None else value
    if is_boolean(entry["type"]):
        return numpy.array(value, bool)[()]
    if is_complex(entry["type"]) and isinstance(stored, list) and len(stored) == 2:
        parts = [float(NAMES[part] if part in NAMES else part) for part in stored]
        return numpy.complex128(complex(*parts))
    dtype = numeric_type(entry)
    if dtype is None:
        return stored
    dtype = dtype.newbyteorder("=")
    if isinstance(stored, str) and stored not in NAMES and dtype.kind == "f":
        # The store has the `_FillValue` of floats as the base64 of a float64.
        stored = numpy.frombuffer(base64.b64decode(stored), "<f8")[0]
    for candidate in (value, stored):
        try:
            return plain_value(candidate, dtype)
        except (OverflowError, TypeError, ValueError):
            # NDL has null for NaN. The store may have converted the value to another type.
            continue
    return stored


def is_boolean(kind: Any) -> bool:
    """Returns whether an NDL type is the enumeration that h5py writes for booleans."""
    return isinstance(kind, dict) and kind.get("enum", {}).get("members") == {"FALSE": 0, "TRUE": 1}


def is_complex(kind: Any) -> bool:
    """Returns whether an NDL type is the compound of `r` and `i` that h5py writes."""
    fields = kind.get("compound", []) if isinstance(kind, dict) else []
    return [name for field in fields for name in field] == ["r", "i"]


def plain_value(value: Any, dtype: numpy.dtype[Any]) -> Any:
    """Returns a number or an array of numbers of this type. Fails if a part of it is null."""
    if isinstance(value, list):
        numbers = [NAMES.get(each, each) if isinstance(each, str) else each for each in value]
        if None in numbers:
            raise TypeError("null is not a number")
        return numpy.array(numbers, dtype)
    if value is None:
        raise TypeError("null is not a number")
    return dtype.type(NAMES.get(value, value) if isinstance(value, str) else value)


def attributes(stored: Dict[str, Any], described: Dict[str, Any]) -> Dict[str, Any]:
    """Returns the attributes of a variable or group: the names and values of the Zarr store, and
    the types of NDL. A NaN in `missing_value`, which the store leaves out, is added."""
    typed = {name: typed_value(value, described.get(name)) for name, value in stored.items()}
    missing = described.get("missing_value")
    if "missing_value" not in typed and isinstance(missing, dict):
        dtype = numeric_type(missing)
        if dtype is not None and dtype.kind == "f" and missing.get("value") in (None, [None]):
            typed["missing_value"] = dtype.newbyteorder("=").type(math.nan)
    # The order of the file.
    names = [name for name in described if name in typed]
    names += [name for name in typed if name not in described]
    return {name: typed[name] for name in names if name not in HIDDEN}


def add_text_fill_value(typed: Dict[str, Any], described: Dict[str, Any], dtype: Any) -> None:
    """Adds the `_FillValue` of a variable of texts, which the Zarr store reports as absent because
    `xarray.open_zarr` cannot read it."""
    absent = typed.get("_h5fs_absent", [])
    names = [absent] if isinstance(absent, str) else list(absent)
    entry = described.get("_FillValue")
    value = entry.get("value") if isinstance(entry, dict) else entry
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if "@_FillValue" not in names or not isinstance(value, str) or dtype.kind not in "SO":
        return
    typed["_FillValue"] = value if dtype.kind == "O" else numpy.bytes_(value.encode())
    names.remove("@_FillValue")
    typed["_h5fs_absent"] = names
    if not names:
        del typed["_h5fs_absent"]


def storage_encoding(entry: Dict[str, Any], dims: Any, dtype: numpy.dtype[Any]) -> Dict[str, Any]:
    """Returns the encoding of a variable as xarray's netCDF engines report it: type, chunks and
    filters in the file."""
    storage = entry.get("storage", {})
    chunks = storage.get("chunk")
    filters: Dict[str, Any] = {}
    for each in storage.get("filter", []):
        filters.update(each if isinstance(each, dict) else {each: {}})
    encoding: Dict[str, Any] = {"dtype": numeric_type(entry) or dtype}
    if dtype.kind == "O":
        encoding["dtype"] = str
    kind = entry.get("type")
    if isinstance(kind, dict) and "enum" in kind and dtype.kind in "iu":
        metadata = {"enum": kind["enum"]["members"], "enum_name": kind["enum"].get("name")}
        encoding["dtype"] = numpy.dtype(dtype, metadata=metadata)
    encoding["contiguous"] = chunks is None
    encoding["chunksizes"] = tuple(chunks) if chunks and len(chunks) == len(dims) else None
    encoding["zlib"] = "deflate" in filters
    if encoding["zlib"]:
        encoding["complevel"] = filters["deflate"].get("level")
    if "lzf" in filters:
        encoding.update(compression="lzf", compression_opts=None)
    for name in ("shuffle", "fletcher32", "szip", "zstd", "bzip2", "blosc"):
        encoding[name] = name in filters
    return encoding
