"""The fsspec filesystem `h5fs`, and the libraries that read through it."""

import os
import pickle
import signal

import fsspec
import h5fs
import numpy
import pytest

ROWS = [{"number": 1, "level": 2.5, "name": "a"}, {"number": 2, "level": 3.5, "name": "b"}]


@pytest.fixture
def filesystem(directory):
    return fsspec.filesystem("h5fs", fo=str(directory / "x.h5"), skip_instance_cache=True)


@pytest.fixture
def url(directory):
    return f"h5fs://.h5fs/parquet/table.parquet::{directory}/x.h5"


def test_paths(filesystem):
    assert sorted(filesystem.ls("", detail=False)) == [
        *["back\\slash", "g", "link", "odd%252Fname", "table"],
    ]
    values = {"name": "g/values", "type": "file", "size": 480_000}
    assert filesystem.ls("g") == filesystem.ls("g/values") == [values]
    assert filesystem.info("h5fs://g/values/") == values
    assert filesystem.info("")["type"] == filesystem.info("g")["type"] == "directory"
    assert filesystem.exists("table") and not filesystem.exists("none")
    assert filesystem.isdir("g") and filesystem.isfile("link")
    assert "table" in filesystem.find("") and "g/values" in filesystem.find("")
    assert filesystem.glob(".h5fs/csv/t*.csv") == [".h5fs/csv/table.csv"]
    with pytest.raises(FileNotFoundError):
        filesystem.ls("none")


def test_bytes(filesystem):
    content = numpy.arange(120_000, dtype="<f4").tobytes()
    assert filesystem.cat("g/values") == content
    assert filesystem.cat_file("g/values", 8, 16) == content[8:16]
    assert filesystem.cat_file("g/values", -8) == content[-8:]
    assert filesystem.cat_file("g/values", 0, -8) == content[:-8]
    ranges = filesystem.cat_ranges(["g/values", "none", "g/values"], [0, 0, 8], [4, 4, None])
    assert [ranges[0], ranges[2]] == [content[:4], content[8:]]
    assert isinstance(ranges[1], FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        filesystem.cat_ranges(["none"], 0, 4, on_error="raise")
    with filesystem.open("g/values", block_size=1000) as file:
        file.seek(400_000)
        assert file.read(2000) == content[400_000:402_000]
        assert file.seek(-4, 2) == 479_996 and file.read() == content[-4:]
    with pytest.raises(h5fs.Error, match="never writes"):
        filesystem.open("new", "wb")
    with pytest.raises(IsADirectoryError):
        filesystem.open("g")


def test_a_chain_names_the_source(url):
    with fsspec.open(url) as file:
        assert file.read(4) == b"PAR1"
    with pytest.raises(h5fs.Error, match="no source"):
        fsspec.open("h5fs://table").open()
    with pytest.raises(h5fs.NotFoundError, match="none.h5"):
        fsspec.open("h5fs://table::/none.h5").open()


def test_options_of_the_source(directory):
    from h5fs.filesystem import H5fsFileSystem

    s3 = {
        "target_protocol": "s3",
        "target_options": {"anon": True, "endpoint_url": "http://[::1]:9"},
    }
    filesystem = H5fsFileSystem("bucket/x.h5", **s3, timeout=1)
    assert filesystem._source_name == "s3://bucket/x.h5"
    assert filesystem._options == {"anonymous": True, "endpoint": "http://[::1]:9", "timeout": 1}
    with pytest.raises(h5fs.Error, match="the option key is unknown"):
        H5fsFileSystem("bucket/x.h5", "s3", {"key": "x"})
    web = H5fsFileSystem("https://example.org/x.h5", target_protocol="https")
    assert web._source_name == "https://example.org/x.h5"


def test_a_filesystem_can_be_pickled(filesystem):
    copy = pickle.loads(pickle.dumps(filesystem))
    assert copy.cat_file("table", 0, 4) == filesystem.cat_file("table", 0, 4)


def test_a_killed_server_is_an_error_once(own_file, children):
    filesystem = fsspec.filesystem("h5fs", fo=str(own_file))
    filesystem.cat("table")
    (process,) = children.processes()
    source = filesystem.source
    os.kill(process, signal.SIGKILL)
    source.server.child.wait()
    with pytest.raises(h5fs.ServerEndedError):
        source.read("table")
    assert filesystem.cat("table")


def test_pandas(url, directory):
    pandas = pytest.importorskip("pandas")
    assert pandas.read_parquet(url).to_dict("records") == ROWS
    csv = f"h5fs://.h5fs/csv/table.csv::{directory}/x.h5"
    options = {"cache_size": "16M"}
    assert pandas.read_csv(csv, storage_options=options).to_dict("records") == ROWS


def test_polars(url):
    polars = pytest.importorskip("polars")
    with fsspec.open(url) as file:
        assert polars.read_parquet(file).to_dicts() == ROWS


def test_pyarrow(filesystem):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(".h5fs/parquet/table.parquet", filesystem=filesystem)
    assert table.to_pylist() == ROWS


def test_duckdb(filesystem):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register_filesystem(filesystem)
    query = "select sum(level) from 'h5fs://.h5fs/parquet/table.parquet'"
    assert connection.sql(query).fetchall() == [(6.0,)]


def test_zarr(directory):
    zarr = pytest.importorskip("zarr")
    options = {"fo": str(directory / "x.h5")}
    group = zarr.open_group("h5fs://.h5fs/file.zarr", storage_options=options, mode="r")
    assert group["g/values"][99, 29, 39] == 119_999
