"""Arrays of the Zarr store that h5fs computes, read chunk by chunk into numpy arrays."""

from __future__ import annotations

import base64
import io
import itertools
import math
import os
import struct
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import numpy

from .errors import NotFoundError
from .source import Source

Index = Union[int, slice, "numpy.ndarray[Any, Any]"]

# Threads that request the chunks of one selection. The server decodes them in its own threads.
REQUESTS = max(2, min(8, os.cpu_count() or 2))

# A selection of fewer bytes is read by the calling thread alone.
PARALLEL_BYTES = 1 << 20

# The largest selection that the server is asked to make of several chunks in one request.
SELECTED_BYTES = 8 << 20

NAMES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

# The codes of numpy for the Zarr types that have a length.
SIZED_TYPES = {
    "null_terminated_bytes": ("S", 1),
    "raw_bytes": ("V", 1),
    "fixed_length_utf32": ("<U", 4),
}

_executor: Optional[ThreadPoolExecutor] = None


def executor() -> ThreadPoolExecutor:
    """Returns the threads that all arrays of this process share."""
    global _executor
    if _executor is None:
        _executor = ThreadPoolExecutor(REQUESTS, thread_name_prefix="h5fs-chunks")
    return _executor


def _forget_executor() -> None:
    global _executor
    _executor = None


os.register_at_fork(after_in_child=_forget_executor)


def parse_type(data_type: Any) -> numpy.dtype[Any]:
    """Returns the numpy type for a Zarr `data_type`. Texts of variable length are objects."""
    if isinstance(data_type, dict):
        code, width = SIZED_TYPES[data_type["name"]]
        length = data_type.get("configuration", {}).get("length_bytes", 0)
        return numpy.dtype(f"{code}{length // width}")
    return numpy.dtype(object) if data_type == "string" else numpy.dtype(data_type)


def parse_fill_value(value: Any, dtype: numpy.dtype[Any]) -> Any:
    """Returns the fill value that a metadata document contains in JSON."""
    if dtype.kind == "O" or dtype.kind == "U":
        return value
    if dtype.kind in "SV":
        return numpy.frombuffer(base64.b64decode(value).ljust(dtype.itemsize, b"\0"), dtype)[0]
    if dtype.kind == "c":
        real, imaginary = (NAMES.get(part, part) for part in value)
        return dtype.type(complex(real, imaginary))
    if isinstance(value, str) and value.startswith("0x"):
        bits = int(value, 16).to_bytes(dtype.itemsize, "little")
        return numpy.frombuffer(bits, dtype.newbyteorder("<"))[0]
    return dtype.type(NAMES.get(value, value))


def decode_texts(content: bytes) -> numpy.ndarray[Any, Any]:
    """Returns the texts of a chunk with the codec `vlen-utf8`."""
    (count,) = struct.unpack_from("<I", content)
    texts = numpy.empty(count, object)
    offset = 4
    for number in range(count):
        (length,) = struct.unpack_from("<I", content, offset)
        offset += 4
        texts[number] = content[offset : offset + length].decode("utf-8", "surrogateescape")
        offset += length
    return texts


class Piece(NamedTuple):
    """The part of one axis that one chunk has: its number, the indices in the chunk, and the
    indices in the result. Both are slices, or both are arrays."""

    chunk: int
    inside: Union[slice, "numpy.ndarray[Any, Any]"]
    result: Union[slice, "numpy.ndarray[Any, Any]"]


def split_axis(index: Index, length: int, chunk: int) -> Tuple[List[Piece], int]:
    """Divides the index of one axis by chunks. Returns also the number of selected elements."""
    if isinstance(index, slice):
        start, stop, step = index.indices(length)
        if step == 1 or stop - start == 1:
            pieces = []
            for number in range(start // chunk, -(-max(stop, start) // chunk)):
                first, last = max(start, number * chunk), min(stop, (number + 1) * chunk)
                if first < last:
                    inside = slice(first - number * chunk, last - number * chunk)
                    pieces.append(Piece(number, inside, slice(first - start, last - start)))
            return pieces, max(0, stop - start)
        index = numpy.arange(start, stop, step)
    positions = numpy.atleast_1d(numpy.asarray(index, numpy.int64))
    positions = numpy.where(positions < 0, positions + length, positions)
    if positions.size and (positions.min() < 0 or positions.max() >= length):
        raise IndexError(f"an index is out of bounds for an axis of length {length}")
    chunks = positions // chunk
    pieces = []
    for number in numpy.unique(chunks):
        (selected,) = numpy.nonzero(chunks == number)
        pieces.append(Piece(int(number), positions[selected] - number * chunk, selected))
    return pieces, positions.size


def first_and_end(index: Union[slice, "numpy.ndarray[Any, Any]"]) -> Tuple[int, int]:
    if isinstance(index, slice):
        return index.start, index.stop
    return int(index.min()), int(index.max()) + 1


def outer(indices: List[Any], lengths: Tuple[int, ...]) -> Any:
    """Returns the numpy index for a selection that is independent in each axis."""
    if all(isinstance(index, slice) for index in indices):
        return tuple(indices)
    ranges = [
        numpy.arange(length)[index] if isinstance(index, slice) else index
        for index, length in zip(indices, lengths)
    ]
    return numpy.ix_(*ranges)


class ChunkedArray:
    """An array of a Zarr store. It may be pickled, and several threads may read it."""

    def __init__(self, source: Source, path: str, view: str, metadata: Dict[str, Any]) -> None:
        self.source = source
        # The path of the array's directory in the store, and of its .npy view without the suffix.
        self.path = path
        self.view = view
        self.shape: Tuple[int, ...] = tuple(metadata["shape"])
        self.dtype = parse_type(metadata["data_type"])
        self.chunks: Tuple[int, ...] = tuple(metadata["chunk_grid"]["configuration"]["chunk_shape"])
        self.fill_value = parse_fill_value(metadata["fill_value"], self.dtype)

    def __getitem__(self, key: Tuple[Index, ...]) -> Any:
        """Returns a selection. The index of an axis is an integer, a slice, or a one-dimensional
        array of integers, independent of the other axes."""
        axes = [split_axis(*each) for each in zip(key, self.shape, self.chunks)]
        if self._has_smaller_selector(key, axes):
            selected = self._select(key)
            if selected is not None:
                return selected
        out = numpy.empty(tuple(count for _, count in axes), self.dtype)
        combinations = list(itertools.product(*(pieces for pieces, _ in axes)))
        if len(combinations) > 1 and out.nbytes >= PARALLEL_BYTES:
            list(executor().map(lambda pieces: self._read(pieces, out), combinations))
        else:
            for pieces in combinations:
                self._read(pieces, out)
        single = (isinstance(index, (int, numpy.integer)) for index in key)
        return out[tuple(0 if is_single else slice(None) for is_single in single)]

    def _has_smaller_selector(
        self, key: Tuple[Index, ...], axes: List[Tuple[List[Piece], int]]
    ) -> bool:
        """Returns whether the selection has less than half the bytes of the chunk rows that
        contain it. The server then selects. It has selectors for integers and slices only."""
        if self.dtype.kind not in "biufc" or "%" in self.view or not key:
            return False
        if any(isinstance(each, numpy.ndarray) for each in key):
            return False
        if any(isinstance(each, slice) and each.step not in (None, 1) for each in key):
            return False
        selected: int = math.prod(count for _, count in axes)
        rest = zip(axes[1:], self.chunks[1:])
        in_chunks: int = axes[0][1] * math.prod(len(part) * chunk for (part, _), chunk in rest)
        return 0 < selected * 2 < in_chunks and selected * self.dtype.itemsize <= SELECTED_BYTES

    def _select(self, key: Tuple[Index, ...]) -> Optional[numpy.ndarray[Any, Any]]:
        """Returns a selection from the .npy view. Returns `None` if the view shows another array
        than the store: the store has records that the file lacks, or names of its own."""
        texts, shape = [], []
        for each, length in zip(key, self.shape):
            if isinstance(each, slice):
                start, stop, _ = each.indices(length)
                texts.append(f"{start}:{stop}")
                shape.append(stop - start)
            else:
                texts.append(str(int(each)))
        try:
            content = self.source.read(f"{self.view}[{','.join(texts)}].npy")
        except NotFoundError:
            return None
        found: numpy.ndarray[Any, Any] = numpy.load(io.BytesIO(content), allow_pickle=False)
        if found.shape != tuple(shape) or found.dtype.newbyteorder("=") != self.dtype:
            return None
        return found.astype(self.dtype, copy=False)

    def _read(self, pieces: Tuple[Piece, ...], out: numpy.ndarray[Any, Any]) -> None:
        """Copies the selected elements of one chunk to their places in the result."""
        path = "/".join([self.path, "c", *(str(piece.chunk) for piece in pieces)])
        result = outer([piece.result for piece in pieces], out.shape)
        try:
            if self.dtype.kind == "O":
                block = decode_texts(self.source.read(path)).reshape(self.chunks)
                out[result] = block[outer([piece.inside for piece in pieces], self.chunks)]
                return
            first, end = first_and_end(pieces[0].inside) if pieces else (0, 1)
            rows = (end - first, *self.chunks[1:])
            row_bytes = math.prod(self.chunks[1:]) * self.dtype.itemsize
            target = contiguous_part(out, result, rows)
            block = numpy.empty(rows, self.dtype) if target is None else target
            if block.nbytes:
                self.source.read_into(
                    path, block.reshape(-1).view(numpy.uint8).data, first * row_bytes
                )
            if target is None:
                inside = [piece.inside for piece in pieces]
                if inside:
                    inside[0] = shifted(inside[0], first)
                out[result] = block[outer(inside, rows)] if inside else block.reshape(())
        except NotFoundError:
            # No element of the chunk was ever written.
            out[result] = self.fill_value


def shifted(index: Union[slice, "numpy.ndarray[Any, Any]"], by: int) -> Any:
    return slice(index.start - by, index.stop - by) if isinstance(index, slice) else index - by


def contiguous_part(
    out: numpy.ndarray[Any, Any], result: Any, shape: Tuple[int, ...]
) -> Optional[numpy.ndarray[Any, Any]]:
    """Returns the part of the result that a block of this shape fills, if the part has this shape
    and is contiguous. The block can then be read without a copy."""
    if not all(isinstance(index, slice) for index in result) or not shape or not out.ndim:
        return None
    part: numpy.ndarray[Any, Any] = out[result]
    return part if part.shape == shape and part.flags.c_contiguous else None
