#!/usr/bin/env python3
"""seeds.py DIRECTORY

Writes the inputs that the fuzz targets begin with, a subdirectory for each target: files of a
kilobyte or two that hold one structure each, because short inputs make many executions a second."""

import bz2
import ctypes
import io
import lzma
import os
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures"))

import asdf
import h5py
import hdf5plugin
import lz4.frame
import numpy as np
from h5py import h5f, h5g, h5p, h5s, h5t, h5z

import plugins
from kit import LIB, creation, dataset, hid_t, low, pattern

LIB.H5Pset_small_data_block_size.argtypes = [hid_t, ctypes.c_ulonglong]

EARLIEST = (h5f.LIBVER_EARLIEST, h5f.LIBVER_LATEST)
LATEST = (h5f.LIBVER_LATEST, h5f.LIBVER_LATEST)
HDF5 = []
I2 = h5t.STD_I16LE


def hdf5(configure=lambda fcpl: None, bounds=(("earliest", EARLIEST), ("latest", LATEST))):
    def register(writer):
        for name, pair in bounds:
            HDF5.append((f"{writer.__name__}.{name}.h5", configure, pair, writer))
        return writer

    return register


def narrow(fcpl):
    """Sets the minimum node sizes of version 1 B-trees."""
    low("H5Pset_istore_k", fcpl.id, 1)
    low("H5Pset_sym_k", fcpl.id, 1, 1)


def write_hdf5(path, configure, bounds, writer):
    fcpl, fapl = h5p.create(h5p.FILE_CREATE), h5p.create(h5p.FILE_ACCESS)
    narrow(fcpl)
    configure(fcpl)
    fapl.set_libver_bounds(*bounds)
    # reserves no space for later objects
    fapl.set_meta_block_size(1)
    low("H5Pset_small_data_block_size", fapl.id, 1)
    with h5py.File(h5f.create(path.encode(), h5f.ACC_TRUNC, fcpl, fapl)) as f:
        writer(f)


# ---------------------------------------------------------------- groups, links, attributes


@hdf5()
def nothing(f):
    pass


@hdf5(lambda fcpl: fcpl.set_userblock(512))
def user_block(f):
    f["x"] = np.arange(3, dtype="<i2")


@hdf5(lambda fcpl: fcpl.set_sizes(4, 4))
def short_addresses(f):
    f.create_dataset("x", data=np.arange(6, dtype="<i2"), chunks=(4,))


@hdf5()
def links(f):
    group = f.create_group("a")
    group["self"] = group
    group["up"] = h5py.SoftLink("../a")
    group["soft"] = h5py.SoftLink("/a/x")
    group["out"] = h5py.ExternalLink("other.h5", "/there")
    group["x"] = np.int16(7)
    f["again"] = group["x"]


@hdf5()
def symbol_nodes(f):
    for i in range(7):
        f[f"link {i}"] = h5py.SoftLink("x")


@hdf5(bounds=[("latest", LATEST)])
def dense_links(f):
    gcpl = h5p.create(h5p.GROUP_CREATE)
    gcpl.set_link_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
    LIB.H5Pset_link_phase_change(gcpl.id, 0, 0)
    group = h5py.Group(h5g.create(f.id, b"g", gcpl=gcpl))
    group["soft"] = h5py.SoftLink("x")
    group["x"] = np.int16(7)


@hdf5()
def attributes(f):
    f["x"] = np.arange(2, dtype="<i2")
    for holder in (f, f["x"]):
        holder.attrs["number"] = np.float32(1.5)
        holder.attrs["text"] = "words"
        holder.attrs["fixed"] = np.bytes_("words")


@hdf5(bounds=[("latest", LATEST)])
def dense_attributes(f):
    plist = creation()
    plist.set_attr_phase_change(0, 0)
    plist.set_attr_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
    made = h5py.Dataset(dataset(f, "x", I2, (2,), b"\1\0\2\0", None, plist))
    for i in range(3):
        made.attrs[f"a{i}"] = np.int16(i)


def shared(fcpl):
    low("H5Pset_shared_mesg_nindexes", fcpl.id, 1)
    low("H5Pset_shared_mesg_index", fcpl.id, 0, 0x182A, 1)


@hdf5(shared, [("latest", LATEST)])
def shared_messages(f):
    for name in "ab":
        f.create_dataset(name, data=np.arange(3, dtype="<i2"), chunks=(2,))
        f[name].attrs["units"] = "metres"


@hdf5()
def scales(f):
    f["x"] = np.arange(3, dtype="<f4")
    f["x"].make_scale("abscissa")
    f["y"] = np.arange(3, dtype="<i2")
    f["y"].dims[0].attach_scale(f["x"])


# ---------------------------------------------------------------- datatypes


@hdf5()
def numbers(f):
    for code in ("i1", ">u2", "<f2", ">f8"):
        f[code] = np.arange(3).astype(code)
    f["complex"] = np.array([1 + 2j], "<c8")
    f["flag"] = np.array([True, False])


@hdf5()
def records(f):
    f["x"] = np.zeros(2, [("a", "<i2"), ("b", [("c", ">f4"), ("d", "S3")]), ("e", "u1", (2,))])


@hdf5()
def odd_types(f):
    enum = h5t.enum_create(h5t.STD_I8LE)
    enum.enum_insert(b"RED", 0)
    enum.enum_insert(b"BLUE", 1)
    opaque = h5t.create(h5t.OPAQUE, 3)
    opaque.set_tag(b"tag")
    narrow_int = h5t.STD_I16LE.copy()
    low("H5Tset_precision", narrow_int.id, 9)
    named = {"enum": enum, "opaque": opaque, "bits": h5t.STD_B8LE, "narrow": narrow_int}
    named["array"] = h5t.array_create(I2, (2, 2))
    for name, kind in named.items():
        dataset(f, name, kind, (2,), bytes(2 * kind.get_size()))
    f["committed"] = np.dtype([("a", "<i2")])
    f.create_dataset("named", (2,), f["committed"])


@hdf5()
def strings(f):
    f["x"] = np.array([b"ab", b"cde", b""], h5py.string_dtype())
    f["fixed"] = np.array([b"ab", b"cde"], "S4")


@hdf5()
def sequences(f):
    made = f.create_dataset("x", (2,), h5py.vlen_dtype("<i2"))
    made[0], made[1] = [1, 2, 3], []


@hdf5()
def references(f):
    f["x"] = np.arange(6, dtype="<i2")
    f.create_dataset("r", (2,), h5py.ref_dtype)[0] = f["x"].ref
    f.create_dataset("regions", (1,), h5py.regionref_dtype)[0] = f["x"].regionref[1:4:2]


@hdf5()
def spaces(f):
    f["scalar"] = np.int16(5)
    f["null"] = h5py.Empty("<i2")
    f.create_dataset("none", (0, 3), "<i2")


# ---------------------------------------------------------------- storage


@hdf5()
def layouts(f):
    dataset(f, "compact", I2, (5,), pattern(10), plist=creation(layout="compact"))
    dataset(f, "contiguous", I2, (5,), pattern(10))
    dataset(f, "fill", I2, (5,), plist=creation(fill=(I2, b"\1\2")))
    plist = creation()
    plist.set_external(b"other.bin", 4, 10)
    dataset(f, "external", I2, (5,), None, None, plist)


BOTH = (("earliest", EARLIEST), ("latest", LATEST))


def chunked(name, shape, chunk, most=None, filters=(), bounds=BOTH, **rest):
    def writer(f):
        raw = pattern(2 * int(np.prod(shape))) // 16
        dataset(f, "x", I2, shape, raw, most, creation(chunk, filters, **rest))

    writer.__name__ = name
    hdf5(bounds=bounds)(writer)


NEW = [("latest", LATEST)]
for suffix, filters in (("", ()), ("_filtered", ("shuffle", "deflate", "fletcher32"))):
    chunked("btree_v1" + suffix, (5, 6), (2, 2), None, filters, [("earliest", EARLIEST)])
    chunked("single" + suffix, (5, 3), (5, 3), None, filters, NEW)
    chunked("fixed_array" + suffix, (5, 6), (2, 4), None, filters, NEW)
    chunked("extensible_array" + suffix, (40,), (2,), (None,), filters, NEW)
    chunked("btree_v2" + suffix, (5, 6), (2, 4), (None, None), filters, NEW)
chunked("fixed_array_paged", (1030,), (1,), None, (), NEW)
chunked("implicit", (5, 6), (2, 4), None, (), NEW, alloc="early")
chunked("no_edges", (5, 6), (2, 4), None, ("deflate",), NEW, unfiltered_edges=True)


@hdf5()
def virtual(f):
    f["x"] = np.arange(6, dtype="<i2")
    plist = creation(fill=(I2, b"\1\2"))
    half = h5s.create_simple((6,))
    half.select_hyperslab((0,), (3,), (2,), (1,))
    plist.set_virtual(half, b".", b"x", h5s.create_simple((3,)))
    dataset(f, "y", I2, (6,), None, None, plist)


# ---------------------------------------------------------------- filters


# in the order of the fuzz target
FILTERS = [1, 2, 3, 4, 5, 6, 305, 307, 32000, 32001, 32003, 32004, 32008, 32013, 32015, 32026, 32018]


def filter_input(number, parameters, stored, length):
    """Encodes a chunk and its filter as the fuzz target decodes them."""
    which = FILTERS.index(number)
    parameters = list(parameters)[:23]
    head = bytes([which, len(parameters)]) + length.to_bytes(3, "little")
    return head + np.array(parameters, "<u4").tobytes() + stored


def write_filters(directory):
    numeric = [
        ("szip", 4, (h5z.SZIP_NN_OPTION_MASK, 8)),
        ("entropy", 4, (h5z.SZIP_EC_OPTION_MASK, 4)),
        ("scaleoffset", 6, (h5z.SO_INT, 0)),
    ]
    rest = [("deflate", 1, (6,)), ("shuffle", 2, ()), ("fletcher32", 3, ()), ("nbit", 5, ())]
    for name, number, values in [*plugins.byte_codecs(), *numeric, *rest, *zfp()]:
        for code in ("u1", "<i2", ">f8") if number not in (6, 32013) else ("<i4",):
            kind = h5t.py_create(np.dtype(code))
            if number == 5:
                kind = h5t.STD_I16LE.copy()
                kind.set_precision(9)
            with h5py.File(io.BytesIO(), "w") as f:
                shape = (8, 16)
                plist = creation(shape)
                if number == 4:
                    plist.set_szip(*values)
                else:
                    plist.set_filter(number, h5z.FLAG_OPTIONAL, values)
                data = np.arange(128) // 3 % 97
                raw = data.astype("<i2" if number == 5 else code).tobytes()
                made = dataset(f, "x", kind, shape, raw, None, plist)
                mask, stored = made.read_direct_chunk((0, 0))
                parameters = made.get_create_plist().get_filter(0)[2]
            if not mask:
                content = filter_input(number, parameters, stored, len(raw))
                put(directory, f"{name}.{code[-2:]}", content)


def zfp():
    for way, value in (("reversible", True), ("rate", 10), ("precision", 12)):
        yield f"zfp_{way}", *plugins.plugin(hdf5plugin.Zfp(**{way: value}))


# ---------------------------------------------------------------- ASDF


def asdf_files():
    """Returns the bytes of whole files."""
    base = np.arange(24, dtype="<i2").reshape(4, 6)
    tree = {"whole": base, "part": base[1:3, ::2], "turned": base.T[::-1]}
    yield "strides", tree, {}
    for label in ("zlib", "bzp2", "lz4"):
        yield label, {"x": np.arange(100, dtype=">i4") // 7}, {"all_array_compression": label}
    numbers, text = np.array([[1, 2], [3, 4]], ">i2"), np.array(["ab", "é"])
    inline = {"x": numbers, "text": text, "z": np.array([1 + 2j])}
    yield "inline", inline, {"all_array_storage": "inline"}
    yield "records", {"x": np.zeros(2, [("a", "<i2"), ("b", ">f4", (2,)), ("c", "S3")])}, {}
    yield "mask", {"x": np.ma.array([1, 2, 3], mask=[0, 1, 0])}, {}
    references = {"ref": {"$ref": "#/map/a/1"}, "out": {"$ref": "other.asdf#/x"}}
    yield "values", {"map": {"a": [1, 2.5, None, True, "é", {"b": []}]}, **references}, {}
    shared = {"x": 1}
    yield "aliases", {"a": shared, "b": [shared, shared]}, {}
    yield "stream", {"x": asdf.tags.core.Stream([3], np.dtype("<i2"))}, {}


TREES = [
    "a: &a {b: 1}\nc:\n  <<: *a\n  <<: [*a, *a]\n  d: *a\n",
    "x: !core/ndarray-1.1.0 {source: 0, datatype: uint8, byteorder: little, shape: [16]}\n",
    "x: !core/ndarray-1.1.0 {source: 0, shape: ['*'], "
    "datatype: [{name: a, datatype: int16, byteorder: big, shape: [2]}, [ascii, 4]]}\n",
    "x: !core/ndarray-1.1.0\n  data: [[1, 2], [3, 4]]\n  datatype: float32\n  mask: 3\n",
    "x: !core/ndarray-1.1.0 {source: other.asdf, datatype: int8, byteorder: big, shape: [1], "
    "offset: 3, strides: [-1]}\n",
    "m: !!omap [a: 1, b: 2]\np: !!pairs [a: 1, a: 2]\ns: !!set {a, b}\nb: !!binary aGVsbG8=\n"
    "7: a\n'7': b\n? [c, d]\n: e\n",
    "text: |+\n  two\n  lines\n\nfolded: >-\n  one\n  line\n'a/b': {'.': 1, '..': 2, '': 3}\n",
    "a: &x [1, *x]\nb: {$ref: '#/a/0'}\nc: {$ref: 'other.asdf#/x'}\n",
]  # fmt: skip


def write_asdf(directory):
    for name, tree, options in asdf_files():
        memory = io.BytesIO()
        asdf.AsdfFile(tree).write_to(memory, **options)
        content = memory.getvalue()
        for target in ("open_and_walk", "read_data"):
            put(f"{directory}/{target}", f"{name}.asdf", content)
        text, _, blocks = content.partition(b"\n...\n")
        put(f"{directory}/asdf_layout", name, blocks)
        put(f"{directory}/yaml_tree", name, text.partition(b"\n--- ")[2].partition(b"\n")[2])
    for i, text in enumerate(TREES):
        put(f"{directory}/yaml_tree", str(i), text.encode())


# ---------------------------------------------------------------- long blocks


def write_streams(directory):
    content = bytes(n * n // 7 % 251 for n in range(3000))
    with h5py.File(io.BytesIO(), "w") as f:
        # this filter stores only a frame
        data = np.frombuffer(content, "u1")
        chunk = f.create_dataset("x", data=data, chunks=(3000,), **hdf5plugin.Zstd())
        frame = chunk.id.read_direct_chunk((0,))[1]
    lz4_frame, xz = lz4.frame.compress(content), lzma.compress(content, preset=0)
    streams = bz2.compress(content, 1), zlib.compress(content), frame, lz4_frame, xz
    for codec, stream in enumerate(streams):
        for piece, order in ((10, 1), (60, 0xFF), (100, 3)):
            head = bytes([codec, piece, *len(content).to_bytes(2, "little"), order])
            put(directory, f"{codec}.{piece}", head + stream)


# ---------------------------------------------------------------- names

NAMES = [
    b"plain", b"a/b", b"%2F", b"%", b"%%", b".", b"..", b"\0", b"\xff\xfe", b".h5fs", b"x" * 300,
    "é".encode() * 200, b"name~0123abcd", b"x[1]", b"x[-1:5:2, ...]", b"x[::3,4]", b"x['field']",
    b"x[field]['other']", b'x["a\\"b"]', b"x[0][1]", b"x[%2F]", b"x[]", b"x[9999999999999999999]",
]  # fmt: skip


def put(directory, name, content):
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, name), "wb") as f:
        f.write(content)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    directory = sys.argv[1]
    for target in ("open_and_walk", "read_data"):
        os.makedirs(f"{directory}/{target}", exist_ok=True)
        for name, *how in HDF5:
            write_hdf5(f"{directory}/{target}/{name}", *how)
    write_filters(f"{directory}/filters")
    write_asdf(directory)
    write_streams(f"{directory}/streams")
    for i, name in enumerate(NAMES):
        put(f"{directory}/names", str(i), name)


if __name__ == "__main__":
    main()
