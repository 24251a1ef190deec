"""xarray's own tests of its netCDF-4 engines, with files that netCDF4 or h5netcdf has written and
that the engine `h5fs` reads.

The tests that write through a store, or open a file by another engine, test those engines."""

import contextlib

import pytest
import xarray

backends = pytest.importorskip("xarray.tests.test_backends")

# Fixtures of these tests.
from xarray.tests.conftest import *  # noqa: E402, F403

pytestmark = pytest.mark.filterwarnings("ignore")


class ReadByH5fs:
    """Opens the files of a test by the engine `h5fs`."""

    @contextlib.contextmanager
    def open(self, path, **options):
        with xarray.open_dataset(path, engine="h5fs", **options) as dataset:
            yield dataset


class TestWrittenByNetCDF4(ReadByH5fs, backends.NetCDF4Base):
    engine = "netcdf4"

    @contextlib.contextmanager
    def create_store(self):
        with backends.create_tmp_file() as path:
            with backends.backends.NetCDF4DataStore.open(path, mode="w") as store:
                yield store

    def test_byte_attrs(self, byte_attrs_dataset):
        # Bytes that are not UTF-8 are surrogates, as by h5netcdf. netCDF4 replaces them.
        expected = bytes(range(1, 256)).decode(errors="surrogateescape")
        with self.roundtrip(byte_attrs_dataset["input"]) as found:
            assert found.x.attrs == {"null_byte": "", "other_bytes": expected}

    @pytest.mark.skip(reason="opens the file by netCDF4 twice, without the method `open`")
    def test_refresh_from_disk(self):
        pass


class TestWrittenByH5netcdf(ReadByH5fs, backends.TestH5NetCDFData):
    engine = "h5netcdf"
