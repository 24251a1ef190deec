"""TIFF and PNG files of arrays, read with image tools, and compared with what h5py reads."""

import os
import re
import shutil
import subprocess
import sys
import warnings

import h5py
import imageio.v3
import numpy as np
import rasterio
import tifffile
from documents import failure
from kit import fixture
from PIL import Image
from tools import said

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fixtures"))
import pictures as arrays  # noqa: E402

# A picture without georeferencing must not cause a warning.
warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
Image.MAX_IMAGE_PIXELS = None


@fixture("pictures.h5", is_large=True)
def write(path):
    arrays.write(path)


@write.others
def others(path, views):
    with h5py.File(path) as file:
        for name, _ in arrays.arrays():
            values = file[name][()]
            yield from tiff_rows(os.path.join(views, "tiff", name + ".tif"), values)
            for suffix, index in arrays.frames(name, values.shape):
                yield from png_rows(os.path.join(views, "png", name + suffix + ".png"), values[index])
    for path in ("tiff/damaged.tif", "png/damaged.png"):
        yield path.split("/")[0], "cat", failure(refused, os.path.join(views, path))


def refused(path):
    assert arrays.refused(path) == "Input/output error", path


# ---------------------------------------------------------------- TIFF


def as_tiff(values):
    """Converts the values to the types that TIFF supports."""
    kinds = {"b": np.uint8, "f2": np.float32}
    kind = values.dtype.kind
    wider = kinds.get(kind) or kinds.get(kind + str(values.dtype.itemsize))
    return values.astype(wider) if wider else values


def page_of(path, values):
    """Returns the shape of one page of a file in the view."""
    name = path.rsplit("/tiff/", 1)[1].removesuffix(".tif")
    return arrays.page(name, values.shape)


def pages_of(path, values):
    """Returns the pictures of the pages as one stack."""
    return values.reshape(-1, *page_of(path, values))


def tifffile_whole(path, values):
    same(tifffile.imread(path), values)


def tifffile_mapped(path, values):
    same(tifffile.memmap(path, mode="r"), values)


def pillow_pages(path, values):
    pages = pages_of(path, values)
    with Image.open(path) as image:
        assert image.n_frames == len(pages), image.n_frames
        for number, page in enumerate(pages):
            image.seek(number)
            same(np.asarray(image), page)


def imageio_whole(path, values):
    same(imageio.v3.imread(path, plugin="tifffile"), values)


def gdal_pages(path, values):
    for number, page in enumerate(pages_of(path, values)):
        with rasterio.open(f"GTIFF_DIR:{number + 1}:{path}") as dataset:
            read = dataset.read()
            same(read[0] if page.ndim == 2 else np.moveaxis(read, 0, -1), page)


def tiffinfo_says(path, values):
    command = ["tiffinfo", "-D", path]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    assert not done.stderr, done.stderr
    height, width, *samples = page_of(path, values)
    assert done.stdout.count(f"Image Width: {width} Image Length: {height}") == len(pages_of(path, values))
    bits = {int(bits) for bits in re.findall(r"Bits/Sample: (\d+)", done.stdout)}
    assert bits == {8 * values.dtype.itemsize}, bits


def identify_says(path, values):
    height, width, *_ = page_of(path, values)
    lines = said("identify", "-regard-warnings", "-format", "%m %w %h\n", path).splitlines()
    assert lines == [f"TIFF {width} {height}"] * len(pages_of(path, values)), lines


def pillow_has(path, values):
    """Returns whether Pillow supports the type. It misreads signed two-byte integers."""
    one = (">u2", "<u2", "|u1", "<i4", ">i4", "<f4", ">f4")
    is_grey = len(page_of(path, values)) == 2
    return values.dtype.str in (one if is_grey else ("|u1",))


def identify_has(_, values):
    """Returns whether ImageMagick 6 supports the type. It refuses integers of 64 bits."""
    return values.dtype.itemsize < 8 or values.dtype.kind == "f"


TIFF = {
    "tifffile": (tifffile_whole, lambda _, values: True),
    "tifffile.memmap": (tifffile_mapped, lambda _, values: values.dtype.itemsize),
    "Pillow": (pillow_pages, pillow_has),
    "imageio": (imageio_whole, lambda _, values: True),
    "GDAL": (gdal_pages, lambda _, values: True),
    "tiffinfo": (tiffinfo_says, lambda _, values: True),
    "identify": (identify_says, identify_has),
}


def tiff_rows(path, values):
    if not values.size or not values.ndim:
        yield "tiff", "cat", failure(absent, path)
        return
    shown = as_tiff(values)
    for tool, (read, suits) in TIFF.items():
        is_there = tool not in ("tiffinfo", "identify") or shutil.which(tool)
        if is_there and suits(path, shown):
            yield "tiff", tool, failure(read, path, shown)


def absent(path):
    assert not os.path.lexists(path), path


# ---------------------------------------------------------------- PNG


def pillow_picture(path, values, expected, texts):
    with Image.open(path) as image:
        levels(np.asarray(image), values, expected)
        assert arrays.same_texts(image.text, texts), image.text


def imageio_picture(path, values, expected, texts):
    levels(imageio.v3.imread(path), values, expected)


def gdal_picture(path, values, expected, texts):
    with rasterio.open(path) as dataset:
        read = dataset.read()
        levels(read[0] if values.ndim == 2 else np.moveaxis(read, 0, -1), values, expected)
        tags = dataset.tags()
        assert arrays.same_texts({key: tags[key] for key in texts}, texts), tags


def pngcheck_says(path, values, expected, texts):
    done = said("pngcheck", "-t", path)
    assert done.startswith("OK") or "\nOK" in done, done
    for key in texts:
        assert f"\n{key}:" in done, done


def identify_picture(path, values, expected, texts):
    height, width, *_ = values.shape
    line = said("identify", "-regard-warnings", "-format", "%m %w %h %z", path)
    assert line.startswith(f"PNG {width} {height} "), line
    # It reports fewer bits if the values need no more.
    assert int(line.split()[-1]) <= 8 * expected.dtype.itemsize, line


def in_colours(values):
    """Returns whether Pillow supports the colours. It reduces colours of 16 bits to 8 bits."""
    return values.ndim == 2 or values.dtype.itemsize == 1


PNG = {
    "Pillow": (pillow_picture, in_colours),
    "imageio": (imageio_picture, in_colours),
    "GDAL": (gdal_picture, lambda values: True),
    "pngcheck": (pngcheck_says, lambda values: True),
    "identify": (identify_picture, lambda values: True),
}


def png_rows(path, values):
    expected, texts = arrays.picture(values)
    for tool, (read, suits) in PNG.items():
        is_there = tool not in ("pngcheck", "identify") or shutil.which(tool)
        if is_there and suits(expected):
            yield "png", tool, failure(read, path, values, expected, texts)


# ---------------------------------------------------------------- comparing


def same(read, values):
    assert read.shape == values.shape, (read.shape, values.shape)
    native = values.dtype.newbyteorder("=")
    assert read.dtype.newbyteorder("=") == native, (read.dtype, values.dtype)
    assert np.array_equal(read, values, equal_nan=values.dtype.kind == "f")


def levels(read, values, expected):
    if values.dtype.kind == "b" and read.dtype == np.uint8 and read.ndim == 2:
        # GDAL and imageio scale boolean values differently.
        read = read > 0
    assert read.shape == expected.shape, (read.shape, expected.shape)
    most = 1 if values.dtype.kind == "f" else 0
    assert np.abs(read.astype("i8") - expected.astype("i8")).max() <= most


# ---------------------------------------------------------------- many pages, many bytes


@fixture("many.h5", is_large=True)
def write_many(path):
    with h5py.File(path, "w") as file:
        pages = np.arange(10_000 * 2 * 5, dtype="<u4").reshape(10_000, 2, 5).astype("<u2")
        file.create_dataset("pages", data=pages, chunks=(100, 2, 5), compression="gzip")
        huge = file.create_dataset("huge", (3, 40_000, 40_000), "<u1", chunks=(1, 1000, 1000))
        huge[2, -1000:, -1000:] = 7


@write_many.others
def others_of_many(path, views):
    with h5py.File(path) as file:
        pages = file["pages"][()]
        shown = os.path.join(views, "tiff/pages.tif")
        for tool in ("tifffile", "tifffile.memmap", "Pillow", "imageio", "tiffinfo"):
            if tool != "tiffinfo" or shutil.which(tool):
                yield "tiff", tool, failure(TIFF[tool][0], shown, pages)
        frame = os.path.join(views, "png/pages/009999.png")
        yield from png_rows(frame, pages[9999])
        yield "png", "ls", failure(ten_thousand, os.path.dirname(frame))
        huge = os.path.join(views, "tiff/huge.tif")
        for tool, read in {"tifffile": last_of_huge, "GDAL": last_of_huge_by_gdal}.items():
            yield "tiff", tool, failure(read, huge)
        frame = os.path.join(views, "png/huge/000002.png")
        yield "png", "GDAL", failure(every_fifth, frame)


def ten_thousand(directory):
    expected = [f"{number:06}.png" for number in range(10_000)]
    assert os.listdir(directory) == expected


def last_of_huge(path):
    assert os.stat(path).st_size > 4 << 30
    mapped = tifffile.memmap(path, mode="r")
    assert mapped.shape == (3, 40_000, 40_000) and mapped[2, -1, -1] == 7
    assert (mapped[2, -1001:-999, -1] == [0, 7]).all() and mapped[1].sum() == 0


def last_of_huge_by_gdal(path):
    with rasterio.open(f"GTIFF_DIR:3:{path}") as dataset:
        window = rasterio.windows.Window(38_998, 38_998, 4, 4)
        read = dataset.read(1, window=window)
        assert (read == [[0, 0, 0, 0]] * 2 + [[0, 0, 7, 7]] * 2).all(), read


def every_fifth(path):
    with rasterio.open(path) as dataset:
        assert (dataset.width, dataset.height) == (8000, 8000)
        assert dataset.tags()["Step"] == "5"
        read = dataset.read(1)
        assert (read[-200:, -200:] == 7).all() and int(read.sum()) == 7 * 200 * 200
