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
    "DIMENSION_LABELS",
    "NAME",
    "REFERENCE_LIST",
    "_NCProperties",
    "_Netcdf4Coordinates",
    "_Netcdf4Dimid",
    "_nc3_strict",
}

NAMES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


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
    is_big = entry.get("storage", {}).get("endian") == "big"
    return dtype.newbyteorder(">" if is_big else "<") if dtype.kind in "iufc" else None


def typed_value(value: Any, entry: Any) -> Any:
    """Returns the value of an attribute in the Zarr store with the type of its NDL entry."""
    dtype = numeric_type(entry) if isinstance(entry, dict) else None
    if dtype is None:
        return value
    dtype = dtype.newbyteorder("=")
    if isinstance(value, str) and value not in NAMES and dtype.kind in "fc":
        # xarray's form of `_FillValue`: base64 of a float64, or of two.
        wide = numpy.dtype("<f8" if dtype.kind == "f" else "<c16")
        return numpy.frombuffer(base64.b64decode(value), wide)[0].astype(dtype)
    try:
        return plain_value(value, dtype)
    except (OverflowError, TypeError, ValueError):
        # A complex number in a form of its own, or a value that the store has converted.
        return value


def plain_value(value: Any, dtype: numpy.dtype[Any]) -> Any:
    if isinstance(value, list):
        return numpy.array([NAMES.get(each, each) if isinstance(each, str) else each for each in value], dtype)
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
    return {name: value for name, value in typed.items() if name not in HIDDEN}


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
        encoding["dtype"] = numpy.dtype(dtype, metadata=metadata)  # type: ignore[call-overload]
    encoding["contiguous"] = chunks is None
    encoding["chunksizes"] = tuple(chunks) if chunks and len(chunks) == len(dims) else None
    encoding["zlib"] = "deflate" in filters
    if encoding["zlib"]:
        encoding["complevel"] = filters["deflate"].get("level")
    for name in ("shuffle", "fletcher32", "szip", "zstd", "bzip2", "blosc"):
        encoding[name] = name in filters
    return encoding
