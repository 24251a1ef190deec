"""The engine `h5fs` of xarray."""

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import h5fs
import numpy
import pytest
import xarray
from h5fs.chunked_array import ChunkedArray, parse_fill_value, parse_type


def test_the_engine_is_registered():
    assert "h5fs" in xarray.backends.list_engines()


@pytest.mark.parametrize("options", [{}, {"decode_cf": False}, {"mask_and_scale": False}])
def test_values_equal_those_of_h5netcdf(directory, options):
    path = directory / "t.nc"
    for group in [None, "/g", "g/h/"]:
        with (
            xarray.open_dataset(path, engine="h5netcdf", group=group, **options) as expected,
            xarray.open_dataset(path, engine="h5fs", group=group, **options) as found,
        ):
            xarray.testing.assert_identical(found, expected)
            for name, variable in expected.variables.items():
                assert found[name].dtype == variable.dtype
                assert repr(found[name].attrs) == repr(variable.attrs)


def test_encodings_equal_those_of_h5netcdf(directory):
    path = directory / "t.nc"
    with (
        xarray.open_dataset(path, engine="h5netcdf") as expected,
        xarray.open_dataset(path, engine="h5fs") as found,
    ):
        assert found.encoding == expected.encoding
        for name, variable in expected.variables.items():
            texts = {key: str(value) for key, value in found[name].encoding.items()}
            assert texts == {key: str(value) for key, value in variable.encoding.items()}
        enumeration = found.sky.encoding["dtype"].metadata["enum"]
        assert enumeration == {"clear": 0, "cumulus": 1}


def test_a_tree_equals_that_of_h5netcdf(directory):
    path = directory / "t.nc"
    with (
        xarray.open_datatree(path, engine="h5netcdf") as expected,
        xarray.open_datatree(path, engine="h5fs") as found,
    ):
        xarray.testing.assert_identical(found, expected)
    with xarray.open_datatree(path, engine="h5fs", group="g") as found:
        assert found.groups == ("/", "/h")


def test_a_missing_group_is_an_error(directory):
    with pytest.raises(h5fs.NotFoundError, match="t.nc: no group 'none'"):
        xarray.open_dataset(directory / "t.nc", engine="h5fs", group="none")
    with pytest.raises(OSError, match="no group"):
        xarray.open_dataset(directory / "t.nc", engine="h5fs", group="v/none")


def test_a_file_without_netcdf(directory):
    with xarray.open_dataset(directory / "x.h5", engine="h5fs") as dataset:
        assert dataset["odd%252Fname"].values.tolist() == [0, 1, 2]
        assert dataset["back\\slash"].values.tolist() == [0, 1]
    with xarray.open_datatree(directory / "x.h5", engine="h5fs") as tree:
        assert "odd%252Fname" in tree and tree["g/values"].shape == (100, 30, 40)


def test_selections(directory):
    expected = numpy.arange(120_000, dtype="f4").reshape(100, 30, 40)
    with xarray.open_dataset(directory / "x.h5", engine="h5fs", group="g") as dataset:
        values = dataset["values"].variable
        for key in [
            numpy.s_[5],
            numpy.s_[5, 6, 7],
            numpy.s_[-1, -1, -1],
            numpy.s_[3:77, 4:6, 20:],
            numpy.s_[:, 7, 8],
            numpy.s_[::7, ::-3, 5::2],
            numpy.s_[[70, 3, 3], :, [1]],
            numpy.s_[5:5],
            numpy.s_[95:1000, :0],
        ]:
            numpy.testing.assert_array_equal(values[key].values, expected[outer(key, expected)])


def outer(key, array):
    """Returns the numpy index for a selection that is independent in each axis."""
    key = key if isinstance(key, tuple) else (key,)
    key += (slice(None),) * (array.ndim - len(key))
    if not any(isinstance(each, list) for each in key):
        return key
    return numpy.ix_(*(numpy.arange(n)[each] for each, n in zip(key, array.shape)))


def test_nothing_is_read_before_values_are_needed(directory, monkeypatch):
    read = []
    original = ChunkedArray.__getitem__
    monkeypatch.setattr(
        ChunkedArray, "__getitem__", lambda self, key: read.append(key) or original(self, key)
    )
    with xarray.open_dataset(directory / "x.h5", engine="h5fs", group="g") as dataset:
        part = dataset["values"][10:20, 3]
        assert not read
        assert part.shape == (10, 40) and part.load().nbytes == 1600
        assert len(read) == 1 and read[0][:2] == (slice(10, 20, 1), 3)


def test_a_small_selection_does_not_read_its_chunks(directory, monkeypatch):
    def refuse(*_):
        raise AssertionError("a chunk was read")

    monkeypatch.setattr(h5fs.Source, "read_into", refuse)
    with xarray.open_dataset(directory / "x.h5", engine="h5fs", group="g") as dataset:
        assert dataset["values"][:, 7, 8].values[-1] == 99 * 1200 + 7 * 40 + 8


def test_asdf(directory):
    asdf = pytest.importorskip("asdf")
    with (
        asdf.open(directory / "a.asdf") as expected,
        xarray.open_datatree(directory / "a.asdf") as tree,
    ):
        assert tree["meta"].attrs["name"] == "x"
        inner = tree["meta/inner"]
        assert inner.attrs == {"n": 5, "list": [1, 2]}
        numpy.testing.assert_array_equal(inner["b"], expected["meta"]["inner"]["b"])
        for name in ["values", "complex", "text"]:
            assert tree[name].dtype == expected[name].dtype.newbyteorder("=")
            numpy.testing.assert_array_equal(tree[name], expected[name])


def test_a_directory_is_one_dataset(directory):
    months = sorted((directory / "months").iterdir())
    expected = xarray.concat([xarray.load_dataset(month) for month in months], "time")
    for source in [directory / "months", months, f"{directory}/months[2025-*.nc]"]:
        with xarray.open_dataset(source, engine="h5fs") as dataset:
            assert dataset.sizes == {"time": 12 * 28, "x": 4}
            numpy.testing.assert_array_equal(dataset.time, expected.time)
            numpy.testing.assert_array_equal(dataset.v, expected.v)


def test_many_files_by_dask(directory):
    pytest.importorskip("dask")
    months = sorted((directory / "months").iterdir())[:2]
    with xarray.open_mfdataset(months, engine="h5fs") as dataset:
        assert dataset.v.chunks and float(dataset.v.mean()) == 3.0


def test_options_and_an_open_source(directory):
    with h5fs.open(directory / "t.nc", cache_size="16M") as source:
        with xarray.open_dataset(source, engine="h5fs") as first:
            assert first.v.shape == (4, 3)
        # Closing the dataset does not close the source of the caller.
        assert source.read("v")
    with xarray.open_dataset(directory / "t.nc", engine="h5fs", cache_size="16M") as dataset:
        assert dataset.v.load().size == 12
    with pytest.raises(h5fs.Error, match="unexpected argument '--colour'"):
        xarray.open_dataset(directory / "t.nc", engine="h5fs", colour="red")


def test_closing_ends_the_server(directory, children):
    for _ in range(20):
        with xarray.open_dataset(directory / "t.nc", engine="h5fs"):
            assert len(children.processes()) == 1
        with xarray.open_datatree(directory / "t.nc", engine="h5fs"):
            assert len(children.processes()) == 1
    with pytest.raises(h5fs.Error):
        xarray.open_dataset(directory / "t.nc", engine="h5fs", group="none")
    assert not children.processes() and not children.files()


def mean(dataset):
    return float(dataset["values"].mean())


def test_datasets_can_be_pickled(directory):
    with xarray.open_dataset(directory / "x.h5", engine="h5fs", group="g") as dataset:
        expected = mean(dataset)
        assert mean(pickle.loads(pickle.dumps(dataset))) == expected
        with ProcessPoolExecutor(2, get_context("spawn")) as executor:
            assert list(executor.map(mean, [dataset] * 3)) == [expected] * 3


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_dask(directory, scheduler):
    dask = pytest.importorskip("dask")
    with xarray.open_dataset(directory / "x.h5", engine="h5fs", group="g", chunks={}) as dataset:
        assert dataset["values"].chunks == ((10,) * 10, (30,), (40,))
        with dask.config.set(scheduler=scheduler, num_workers=2):
            assert float(dataset["values"].astype("f8").mean()) == 59_999.5


def test_types_of_zarr():
    assert parse_type("uint16") == "u2" and parse_type("string") == object
    sized = {"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}}
    assert parse_type(sized) == "S3"
    assert parse_type({"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}) == "U2"
    assert parse_fill_value("-Infinity", numpy.dtype("f4")) == -numpy.inf
    assert numpy.isnan(parse_fill_value("0x7fc00001", numpy.dtype("f4")))
    assert parse_fill_value([1.0, "Infinity"], numpy.dtype("c8")).imag == numpy.inf
    assert parse_fill_value("YWI=", numpy.dtype("S3")) == b"ab"
    assert parse_fill_value(2**63, numpy.dtype("u8")) == 2**63
