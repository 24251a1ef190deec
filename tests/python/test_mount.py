"""`h5fs.mount`."""

import os

import h5fs
import numpy
import pytest

needs_fuse = pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="there is no /dev/fuse")


@needs_fuse
def test_a_mount_ends_with_its_block(directory, children):
    with h5fs.mount(directory / "x.h5", cache_size="16M") as path:
        values = numpy.load(path / ".h5fs/npy/g/values.npy", mmap_mode="r")
        assert values.shape == (100, 30, 40) and values[99, 29, 39] == 119_999
        del values
    assert not path.exists()
    assert not children.processes() and not children.files()


@needs_fuse
def test_a_mount_uses_a_given_directory(directory, tmp_path):
    point = tmp_path / "mnt"
    point.mkdir()
    with h5fs.mount(directory / "x.h5", point) as path:
        assert path == point and (point / "g").is_dir()
    assert point.is_dir() and not list(point.iterdir())


@needs_fuse
def test_a_mount_of_a_pattern_is_the_joined_file(directory):
    with h5fs.mount(f"{directory}/months[2025-1?.nc]") as path:
        assert numpy.load(path / ".h5fs/npy/v.npy").shape == (3 * 28, 4)


def test_a_failed_mount_is_an_error(directory, children):
    with pytest.raises(h5fs.NotFoundError, match="none.h5: No such file or directory"):
        with h5fs.mount(directory / "none.h5"):
            pass
    assert not children.processes() and not children.files()


def test_a_missing_mount_point_is_an_error(directory, tmp_path):
    with pytest.raises(h5fs.Error, match="none"):
        with h5fs.mount(directory / "x.h5", tmp_path / "none"):
            pass
