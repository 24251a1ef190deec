"""Equality with `engine="h5netcdf"` over the netCDF-4 files of the corpus, decoded and raw.

The corpus is the directory in `H5FS_CORPUS`, or ../shared/corpus/hdf5. Names of dimensions that the
file does not name (`phony_dim_…`) are not compared: h5netcdf numbers them, and h5fs names them by
their length."""

import os
from pathlib import Path

import h5py
import pytest
import xarray

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(os.environ.get("H5FS_CORPUS", ROOT.parent / "shared/corpus/hdf5"))
DIRECTORIES = ["Unidata__netcdf-c", "sdist__netcdf4*", "gauteh__hidefix"]
COMPOUND = "a variable of compounds is a group of its fields, because xarray computes with numbers"

# The expected differences: objects of a file, by their path, and the reason.
DIFFERENCES = {
    "h5_test/ref_tst_h_compounds.h5": {"/obs_var": COMPOUND},
    "h5_test/ref_tst_h_compounds2.h5": {
        "/@The_Nutmeg_of_Consolation": "an attribute of compounds is a dictionary",
    },
    "nc_test4/ref_tst_xplatform2_2.nc": {
        "/@Runnymede": "an attribute of compounds is a list of dictionaries",
    },
    "ncdump/ref_tst_compounds2.nc": {"/phony_compound_var": COMPOUND},
    "ncdump/ref_nc_test_netcdf4_4_0.nc": {
        "/@Gc": "a byte that is not UTF-8 is a surrogate; h5netcdf gives bytes for one character",
    },
}

RAW = ["mask_and_scale", "decode_times", "concat_characters", "decode_coords"]


def files():
    """Yields the HDF5 files of the corpus."""
    for pattern in DIRECTORIES:
        for directory in CORPUS.glob(pattern):
            for path in sorted(directory.rglob("*")):
                if path.is_file() and h5py.is_hdf5(path):
                    yield path


def normal(variable):
    """Returns a variable whose unnamed dimensions have the names of their axes."""
    dims = [
        f"axis{n}" if str(d).startswith("phony_dim_") else d for n, d in enumerate(variable.dims)
    ]
    return xarray.Variable(dims, variable.data, variable.attrs)


def differences(expected, found):
    """Yields the paths of objects that differ, and how."""
    for node in expected.subtree:
        if node.path not in found.groups:
            yield node.path, "absent"
            continue
        other = found[node.path]
        prefix = node.path.rstrip("/")
        names = (node.attrs.keys() | other.attrs.keys()) - {"_h5fs_absent"}
        for name in names:
            if repr(node.attrs.get(name)) != repr(other.attrs.get(name)):
                yield f"{prefix}/@{name}", (node.attrs.get(name), other.attrs.get(name))
        for name, variable in node.variables.items():
            if name not in other.variables:
                yield f"{prefix}/{name}", "absent"
                continue
            same = other.variables[name]
            assert (name in node.coords) == (name in other.coords)
            assert same.dtype == variable.dtype
            try:
                xarray.testing.assert_identical(normal(variable), normal(same))
            except AssertionError as error:
                yield f"{prefix}/{name}", str(error)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="there is no corpus")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("is_raw", [False, True])
def test_the_corpus_equals_h5netcdf(is_raw):
    options = dict.fromkeys(RAW, False) if is_raw else {}
    compared = 0
    for path in files():
        try:
            expected = xarray.open_datatree(path, engine="h5netcdf", phony_dims="access", **options)
            expected.load()
        except Exception:
            # h5netcdf cannot read the file; h5fs must not crash.
            try:
                xarray.open_datatree(path, engine="h5fs", **options).close()
            except (OSError, ValueError):
                pass
            continue
        allowed = next((d for end, d in DIFFERENCES.items() if str(path).endswith(end)), {})
        with expected, xarray.open_datatree(path, engine="h5fs", **options) as found:
            actual = dict(differences(expected, found))
        assert actual.keys() == allowed.keys(), (path, actual)
        compared += 1
    assert compared >= 16
