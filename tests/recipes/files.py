"""files.py DIRECTORY: writes the files of docs/recipes.md with the libraries that define their
formats. The numbers are simple, so that a reader can check the document without tools."""

import os
import sys

import anndata
import asdf
import h5py
import netCDF4
import numpy as np
import pandas as pd
from astropy.table import Table
from pynwb import NWBHDF5IO, NWBFile


def netcdf(path):
    """Writes a temperature of 270 + d at every point on day d."""
    with netCDF4.Dataset(path, "w") as f:
        for name, length in (("time", 10), ("lat", 3), ("lon", 4)):
            f.createDimension(name, length)
        time = f.createVariable("time", "i4", ("time",))
        time.units = "days since 2026-01-01"
        time[:] = np.arange(10)
        t2m = f.createVariable("t2m", "f4", ("time", "lat", "lon"), zlib=True)
        t2m.units = "K"
        t2m[:] = 270 + np.arange(10)[:, None, None] + np.zeros((10, 3, 4))


def cells(path):
    """Writes cells of the batches a and b. Cell i has the counts i, i + 1 and i + 2 of three
    genes."""
    obs = pd.DataFrame(
        {"batch": pd.Categorical(["a", "b", "a", "b"]), "n_counts": [3, 6, 9, 12]},
        index=[f"cell{i}" for i in range(4)],
    )
    var = pd.DataFrame(index=["CD3E", "CD8A", "MS4A1"])
    x = np.arange(4)[:, None] + np.arange(3.0)
    anndata.AnnData(X=x.astype("f4"), obs=obs, var=var).write_h5ad(path)


def session(path):
    """Writes trials. Trial i lasts from 10 i to 10 i + 4 seconds."""
    import datetime

    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    nwb = NWBFile("a session", "recipe", start)
    nwb.add_trial_column("choice", "the port that the animal chose")
    for i in range(3):
        nwb.add_trial(start_time=10.0 * i, stop_time=10.0 * i + 4, choice=("left", "right")[i % 2])
    with NWBHDF5IO(path, "w") as file:
        file.write(nwb)


def weights(path, bias):
    """Writes a `model.weights.h5` in the layout of Keras 3."""
    with h5py.File(path, "w") as f:
        f["layers/dense/vars/0"] = np.eye(3, 2, dtype="f4")
        f["layers/dense/vars/1"] = np.array(bias, "f4")


def matlab(path):
    """Writes A = [1 2 3; 4 5 6] and name = 'Kiruna' in the layout of MATLAB's `save -v7.3`."""
    with h5py.File(path, "w", userblock_size=512) as f:
        f["A"] = np.array([[1, 2, 3], [4, 5, 6]], "f8").T
        f["A"].attrs["MATLAB_class"] = np.bytes_("double")
        f["name"] = np.array([[ord(c)] for c in "Kiruna"], "u2")
        f["name"].attrs["MATLAB_class"] = np.bytes_("char")
        f["name"].attrs["MATLAB_int_decode"] = np.int32(2)
    with open(path, "r+b") as f:
        header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM"
        f.write(header)


def run(path, energies):
    """Writes events. Event i has an energy and the channel i % 2."""
    events = np.zeros(len(energies), [("energy", "f8"), ("channel", "u1")])
    events["energy"] = energies
    events["channel"] = np.arange(len(energies)) % 2
    with h5py.File(path, "w") as f:
        f["events"] = events


def catalogue(path):
    """Writes stars. Star i has the magnitude 10 + i / 2."""
    table = Table({"id": np.arange(4), "mag": 10 + np.arange(4) / 2})
    asdf.AsdfFile({"catalogue": table}).write_to(path)


def main(directory):
    os.chdir(directory)
    netcdf("t2m.nc")
    cells("cells.h5ad")
    session("session.nwb")
    weights("epoch1.weights.h5", [0.5, 0.25])
    weights("epoch2.weights.h5", [0.5, 0.75])
    matlab("run.mat")
    catalogue("stars.asdf")
    run("run1.h5", [1.0, 6.0, 8.0])
    run("run2.h5", [9.0, 2.0])


if __name__ == "__main__":
    main(*sys.argv[1:])
