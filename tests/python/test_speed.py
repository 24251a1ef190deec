"""Times of the engine `h5fs` beside h5netcdf, for an idle machine: `python-tests -m speed`."""

import statistics
import time

import numpy
import pytest
import xarray

ROUNDS = 5


@pytest.fixture(scope="module")
def compressed(tmp_path_factory):
    path = tmp_path_factory.mktemp("speed") / "v.nc"
    steps = numpy.random.default_rng(0).integers(-3, 4, (100, 512, 1024))
    values = (numpy.cumsum(steps, axis=2) / 8).astype("f4")
    encoding = {"v": {"zlib": True, "shuffle": True, "complevel": 4, "chunksizes": (10, 256, 512)}}
    dataset = xarray.Dataset({"v": (("t", "y", "x"), values)})
    dataset.to_netcdf(path, engine="h5netcdf", encoding=encoding)
    return path


def seconds(path, engine):
    import dask

    start = time.perf_counter()
    with xarray.open_dataset(path, engine=engine, chunks={}) as dataset:
        with dask.config.set(scheduler="threads", num_workers=2):
            dataset.v.mean().compute()
    return time.perf_counter() - start


@pytest.mark.speed
def test_two_threads_of_dask_are_faster_than_h5netcdf(compressed):
    pytest.importorskip("dask")
    times = [(seconds(compressed, "h5netcdf"), seconds(compressed, "h5fs")) for _ in range(ROUNDS)]
    theirs, ours = (statistics.median(column) for column in zip(*times))
    print(f"h5netcdf {theirs:.2f} s, h5fs {ours:.2f} s, ratio {theirs / ours:.2f}")
    assert theirs >= 1.5 * ours
