"""trades.py TRADE [DIRECTORY]: writes the files of one section of docs/by-trade.md. Their names,
attributes and conventions are those of the real files of the trade. The numbers are simple, so that
a reader can check the document without tools."""

import datetime
import os
import shutil
import sys
import time

import anndata
import asdf
import h5py
import hdf5plugin
import mudata
import netCDF4
import numpy as np
import pandas as pd
import tables
from asdf.tagged import TaggedDict
from astropy.table import Table
from pynwb import NWBHDF5IO, NWBFile
from pynwb.ecephys import ElectricalSeries
from scipy.sparse import csr_matrix


def variable(f, name, dimensions, values, kind=None, **attributes):
    """Writes a compressed netCDF variable."""
    values = np.asarray(values)
    fill = attributes.pop("_FillValue", None)
    v = f.createVariable(name, kind or values.dtype, dimensions, zlib=values.ndim > 1, fill_value=fill)
    v.set_auto_maskandscale(False)
    v.setncatts(attributes)
    v[...] = values


def climate():
    """Writes two years of CMIP6. The temperature is 300 K - |latitude| / 2, and one degree more in
    the second year."""
    for year in (2015, 2016):
        start, end = datetime.date(year, 1, 1), datetime.date(year + 1, 1, 1)
        days = (start - datetime.date(1850, 1, 1)).days + np.arange((end - start).days)
        lat, lon = np.arange(-80.0, 81, 20), np.arange(0.0, 360, 30)
        name = f"tas_day_EC-Earth3_ssp245_r1i1p1f1_gr_{year}0101-{year}1231.nc"
        with netCDF4.Dataset(name, "w") as f:
            f.setncatts({"Conventions": "CF-1.7 CMIP-6.2", "mip_era": "CMIP6", "variable_id": "tas"})
            f.setncatts({"source_id": "EC-Earth3", "experiment_id": "ssp245", "frequency": "day"})
            f.createDimension("time")
            for axis, values in (("lat", lat), ("lon", lon)):
                f.createDimension(axis, len(values))
            f.createDimension("bnds", 2)
            variable(
                f, "time", ("time",), days + 0.5, units="days since 1850-01-01", standard_name="time",
                calendar="proleptic_gregorian", axis="T", bounds="time_bnds",
            )  # fmt: skip
            variable(f, "time_bnds", ("time", "bnds"), days[:, None] + np.arange(2.0))
            variable(f, "lat", ("lat",), lat, units="degrees_north", standard_name="latitude", axis="Y")
            variable(f, "lon", ("lon",), lon, units="degrees_east", standard_name="longitude", axis="X")
            variable(f, "height", (), 2.0, units="m", standard_name="height", positive="up", axis="Z")
            zonal = 300 - abs(lat) / 2 + (year - 2015)
            tas = np.broadcast_to(zonal[:, None], (len(days), len(lat), len(lon)))
            variable(
                f, "tas", ("time", "lat", "lon"), tas, "f4", _FillValue=np.float32(1e20), units="K",
                standard_name="air_temperature", long_name="Near-Surface Air Temperature",
                cell_methods="area: time: mean", coordinates="height",
            )  # fmt: skip


def ocean():
    """Writes a year of NEMO on a curvilinear grid, of two runs. The temperature is 20 - level - row,
    0 in the corner of the grid that is land, and one number differs between the runs."""
    shape = (12, 4, 5, 6)
    depth = np.array([0.5, 10, 50, 200], "f4")
    j, i = np.mgrid[:5, :6]
    theta = np.broadcast_to(20 - np.arange(4)[:, None, None] - j, shape).astype("f4")
    theta = np.where((j == 4) & (i > 3), np.float32(1e20), theta)
    seconds = 86400 * (np.cumsum([31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]) - 15.0)
    for run in ("control", "test"):
        if run == "test":
            theta[11, 3, 0, 0] += 0.25
        with netCDF4.Dataset(f"{run}_1m_20240101_20241231_grid_T.nc", "w") as f:
            f.setncatts({"Conventions": "CF-1.6", "name": f"{run}_1m"})
            f.description = "ocean T grid variables"
            for name, length in zip(("time_counter", "deptht", "y", "x"), (None, *shape[1:])):
                f.createDimension(name, length)
            lat, lon = 60 + j + 0.1 * i, 10 + i - 0.1 * j
            for name, values, long, units in (
                ("nav_lat", lat, "latitude", "degrees_north"), ("nav_lon", lon, "longitude", "degrees_east"),
            ):  # fmt: skip
                variable(f, name, ("y", "x"), values, "f4", standard_name=long, units=units)
            levels = {"long_name": "Vertical T levels", "units": "m", "positive": "down"}
            variable(f, "deptht", ("deptht",), depth, **levels)
            variable(
                f, "time_counter", ("time_counter",), seconds, standard_name="time", axis="T",
                units="seconds since 2024-01-01 00:00:00", calendar="gregorian",
            )  # fmt: skip
            variable(
                f, "thetao", ("time_counter", "deptht", "y", "x"), theta, _FillValue=np.float32(1e20),
                long_name="sea_water_potential_temperature", units="degC", online_operation="average",
                interval_operation="3600 s", coordinates="nav_lat nav_lon",
            )  # fmt: skip


def satellite():
    """Writes cloud heights of GOES-16 and a grid of HDF-EOS. A pixel of row r and column c is
    1000 r + 100 c metres high, and those with c = 5 are bad."""
    name = "OR_ABI-L2-ACHAC-M6_G16_s20261201801170_e20261201803543_c20261201806127.nc"
    rows, columns = np.mgrid[:4, :6]
    with netCDF4.Dataset(name, "w") as f:
        f.setncatts({"Conventions": "CF-1.7", "platform_ID": "G16", "scene_id": "CONUS"})
        f.setncatts({"title": "ABI L2 Cloud Top Height", "time_coverage_start": "2026-04-30T18:01:17.0Z"})
        f.createDimension("y", 4)
        f.createDimension("x", 6)
        packed = {"scale_factor": np.float32(0.5), "add_offset": np.float32(0), "_Unsigned": "true"}
        grid = {"coordinates": "t y x", "grid_mapping": "goes_imager_projection"}
        for axis, length, step, start in (("y", 4, -0.002, 0.09), ("x", 6, 0.002, -0.02)):
            variable(
                f, axis, (axis,), np.arange(length), "i2", scale_factor=np.float32(step), axis=axis.upper(),
                add_offset=np.float32(start), units="rad", standard_name=f"projection_{axis}_coordinate",
            )  # fmt: skip
        epoch = "seconds since 2000-01-01 12:00:00"
        variable(f, "t", (), 830_844_156.0, units=epoch, standard_name="time", axis="T")
        variable(
            f, "goes_imager_projection", (), -2147483647, "i4", grid_mapping_name="geostationary",
            perspective_point_height=35786023.0, semi_major_axis=6378137.0, semi_minor_axis=6356752.31414,
            latitude_of_projection_origin=0.0, longitude_of_projection_origin=-75.0, sweep_angle_axis="x",
        )  # fmt: skip
        heights = np.where(columns == 5, 65535, 2000 * rows + 200 * columns)
        variable(
            f, "HT", ("y", "x"), heights.astype("u2").view("i2"), _FillValue=np.int16(-1), units="m",
            long_name="ABI L2+ Cloud Top Height", **packed, **grid,
        )  # fmt: skip
        meanings = "good_quality_qf not_geolocated_qf LZA_exceeded_qf bad_temperature_qf clear_sky_qf"
        variable(
            f, "DQF", ("y", "x"), np.where(columns == 5, 4, 0), "i1", flag_values=np.arange(5, dtype="i1"),
            flag_meanings=meanings, **grid,
        )  # fmt: skip
    with h5py.File("OMI-Aura_L3-OMTO3e_2026m0430_v003.he5", "w") as f:
        fields = f.create_group("HDFEOS/GRIDS/OMI Column Amount O3/Data Fields")
        ozone = fields.create_dataset("ColumnAmountO3", data=300 + np.arange(12, dtype="f4").reshape(3, 4))
        ozone.attrs["Units"], ozone.attrs["Title"] = "DU", "Total column ozone"
        ozone.attrs["_FillValue"] = np.float32(-1.2676506e30)
        f.create_group("HDFEOS/ADDITIONAL/FILE_ATTRIBUTES").attrs["InstrumentName"] = "OMI"
        lines = ("GROUP=GridStructure", "GROUP=GRID_1", 'GridName="OMI Column Amount O3"', "XDim=4", "YDim=3")
        f["HDFEOS INFORMATION/StructMetadata.0"] = np.bytes_("\n".join((*lines, "END", "")))


def neutrons():
    """Writes a scan in NeXus: four frames of a detector, of which frame i has i + 1 counts in each
    pixel, and the positions of a motor."""
    with h5py.File("scan_0042.nxs", "w") as f:
        f.attrs["default"], f.attrs["creator"] = "entry", "recipe"
        entry = f.create_group("entry")
        entry.attrs["NX_class"], entry.attrs["default"] = "NXentry", "data"
        entry["title"], entry["definition"] = "Si 111 rocking curve", "NXrefscan"
        entry["start_time"] = "2026-01-01T08:00:00Z"
        for name, kind in (("instrument", "NXinstrument"), ("sample", "NXsample"), ("data", "NXdata")):
            entry.create_group(name).attrs["NX_class"] = kind
        entry["sample/name"] = "Si 111"
        entry["sample/temperature"] = 295.5
        entry["sample/temperature"].attrs["units"] = "K"
        detector = entry["instrument"].create_group("eiger")
        detector.attrs["NX_class"] = "NXdetector"
        frames = np.arange(1, 5, dtype="u2")[:, None, None] * np.ones((1, 6, 8), "u2")
        detector.create_dataset("data", data=frames, chunks=(1, 6, 8), **hdf5plugin.Bitshuffle(cname="lz4"))
        detector["distance"] = 1.5
        detector["distance"].attrs["units"] = "m"
        scan = entry["data"]
        scan.attrs["signal"], scan.attrs["axes"] = "counts", "omega"
        scan["omega"] = 14.0 + 0.1 * np.arange(4)
        scan["omega"].attrs["units"] = "deg"
        scan["counts"] = 48 * np.arange(1, 5)
        scan["monitor"] = np.full(4, 1000)


def neuroscience():
    """Writes a session of two channels at 1 kHz, with electrodes, trials and two units. Sample s of
    channel c is s + 10 c microvolts, stored as counts of half a microvolt."""
    start = datetime.datetime(2026, 1, 1, 9, tzinfo=datetime.timezone.utc)
    nwb = NWBFile("running on a wheel", "m7-session1", start, session_id="1", lab="recipe")
    device = nwb.create_device("probe")
    group = nwb.create_electrode_group("shank0", "the only shank", "VISp", device)
    for channel in range(2):
        nwb.add_electrode(location=("VISp", "CA1")[channel], group=group)
    region = nwb.create_electrode_table_region([0, 1], "both channels")
    counts = 2 * (np.arange(100)[:, None] + 10 * np.arange(2))
    nwb.add_acquisition(
        ElectricalSeries(
            name="ElectricalSeries", data=counts.astype("i2"), electrodes=region, conversion=5e-7, rate=1000.0
        )
    )
    nwb.add_trial_column("correct", "whether the answer was right")
    for i in range(4):
        nwb.add_trial(start_time=10.0 * i, stop_time=10.0 * i + 4, correct=i % 2 == 0)
    nwb.add_unit_column("quality", "the result of curation")
    nwb.add_unit(spike_times=[0.5, 10.5, 11.0], quality="good")
    nwb.add_unit(spike_times=[1.5, 30.25], quality="mua")
    with NWBHDF5IO("sub-m7_ses-1_ecephys.nwb", "w") as file:
        file.write(nwb)


def cells():
    """Writes six cells of two types with three genes and two proteins. Cell i has i counts of CD3E,
    1 of MS4A1 if i is even, and none of NKG7."""
    counts = np.array([[i, (i + 1) % 2, 0] for i in range(6)], "f4")
    obs = pd.DataFrame(
        {"leiden": pd.Categorical(["T", "B"] * 3), "n_counts": counts.sum(1)},
        index=[f"AAAC{i}-1" for i in range(6)],
    )
    rna = anndata.AnnData(csr_matrix(counts), obs, pd.DataFrame(index=["CD3E", "MS4A1", "NKG7"]))
    rna.obsm["X_umap"] = np.stack([np.arange(6.0), -np.arange(6.0)], axis=1)
    rna.layers["log1p"] = np.log1p(counts)
    rna.write_h5ad("pbmc.h5ad")
    protein = anndata.AnnData(np.ones((6, 2), "f4"), obs[[]], pd.DataFrame(index=["CD3", "CD19"]))
    mudata.set_options(pull_on_update=False)
    mudata.MuData({"rna": rna, "prot": protein}).write_h5mu("pbmc.h5mu")


def astronomy():
    """Writes an image in the layout of Roman's pipeline. The pixel of row r and column c is 10 r + c,
    and its catalogue has three sources."""
    meta = {
        "telescope": "ROMAN",
        "filename": "r0000101001001001001_0001_wfi01_f158_cal.asdf",
        "instrument": {"name": "WFI", "detector": "WFI01", "optical_element": "F158"},
        "exposure": {"type": "WFI_IMAGE", "exposure_time": 139.8, "nresultants": 6},
        "target": {"ra": 270.0, "dec": 66.0},
    }
    data = (10 * np.arange(8)[:, None] + np.arange(8)).astype("f4")
    dq = np.zeros((8, 8), "u4")
    dq[0, 0] = 1
    tag = "asdf://stsci.edu/datamodels/roman/tags/wfi_image-1.0.0"
    image = TaggedDict({"meta": meta, "data": data, "dq": dq, "err": data / 10}, tag)
    asdf.AsdfFile({"roman": image}).write_to(meta["filename"], all_array_compression="lz4")
    sources = Table({"label": [1, 2, 3], "xcentroid": [1.5, 4.0, 6.25], "flux": [30.0, 10.0, 20.0]})
    asdf.AsdfFile({"roman": {"source_catalog": sources}}).write_to("r0000101_f158_cat.asdf")


def matlab():
    """Writes A = reshape(1:6, 2, 3), s.name = 'Kiruna', s.temperature = -4.5, c = {'a', 'bc'} and
    ok = true in the layout of MATLAB's `save -v7.3`."""

    def save(group, name, values, kind, **attributes):
        group[name] = values
        group[name].attrs["MATLAB_class"] = np.bytes_(kind)
        for key, value in attributes.items():
            group[name].attrs[key] = np.int32(value)
        return group[name]

    def text(group, name, value):
        codes = np.array([[ord(c)] for c in value], "u2")
        return save(group, name, codes, "char", MATLAB_int_decode=2)

    with h5py.File("experiment.mat", "w", userblock_size=512) as f:
        save(f, "A", np.arange(1.0, 7).reshape(3, 2), "double")
        save(f, "ok", np.array([[1]], "u1"), "logical", MATLAB_int_decode=1)
        s = f.create_group("s")
        s.attrs["MATLAB_class"] = np.bytes_("struct")
        text(s, "name", "Kiruna")
        save(s, "temperature", np.array([[-4.5]]), "double")
        refs = f.create_group("#refs#")
        targets = [text(refs, name, value).ref for name, value in (("a", "a"), ("b", "bc"))]
        save(f, "c", np.array(targets, h5py.ref_dtype).reshape(2, 1), "cell")
    header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, HDF5 schema 1.00 .".ljust(116)
    with open("experiment.mat", "r+b") as f:
        f.write(header + bytes(8) + b"\x00\x02IM")


def finance():
    """Writes daily prices with pandas and trades with PyTables. The price of day d is 100 + d, and
    10 less for the second symbol."""
    days = pd.date_range("2026-01-05", periods=5, name="date")
    prices = pd.DataFrame(
        {"symbol": ["NOK", "ERIC"] * 5, "close": [100.0 + d - 10 * s for d in range(5) for s in (0, 1)]},
        index=days.repeat(2),
    )
    prices.to_hdf("prices.h5", key="daily", format="table", data_columns=["symbol"])

    class Trade(tables.IsDescription):
        time = tables.Time64Col(pos=0)
        symbol = tables.StringCol(8, pos=1)
        price = tables.Float64Col(pos=2)
        size = tables.Int32Col(pos=3)
        buyer = tables.BoolCol(pos=4)

    with tables.open_file("trades.h5", "w") as f:
        table = f.create_table("/", "trades", Trade, "trades of one day")
        second = datetime.datetime(2026, 1, 5, 9, tzinfo=datetime.timezone.utc).timestamp()
        symbols = ("ERIC", "NOK")
        table.append([(second + i / 4, symbols[i % 2], 100 + i / 8, 10 * i, i < 2) for i in range(6)])


def simulations():
    """Writes three snapshots in the layout of Gadget. Particle i has the position (i, i, i) + t, and
    the density 10 t + i, where t is the number of the snapshot."""
    for t in range(3):
        with h5py.File(f"snap_{t:03}.hdf5", "w") as f:
            header = f.create_group("Header")
            header.attrs["Time"], header.attrs["Redshift"] = 0.25 * (t + 1), 4 / (t + 1) - 1
            header.attrs["BoxSize"] = 10.0
            header.attrs["NumPart_ThisFile"] = np.array([4, 0, 0, 0, 0, 0], "i4")
            gas = f.create_group("PartType0")
            gas["Coordinates"] = np.arange(4.0)[:, None] + t + np.zeros(3)
            gas["ParticleIDs"] = np.arange(1, 5, dtype="u8")
            gas["Density"] = 10 * t + np.arange(4, dtype="f4")
            gas["Masses"] = np.full(4, 0.5, "f4")


def instrument():
    """Writes a file as a program leaves it that crashes after a flush, and another one with SWMR, to
    which it appends for ten seconds. Point i has the count i * i."""
    with h5py.File("scan.nxs", "w", libver="latest") as f:
        f["entry/data/counts"] = np.arange(100) ** 2
        f.flush()
        shutil.copy("scan.nxs", "scan_0041.nxs")
    os.remove("scan.nxs")
    with h5py.File("scan_0042.nxs", "w", libver="latest") as f:
        entry = f.create_group("entry")
        entry.attrs["NX_class"] = "NXentry"
        data = entry.create_group("data")
        data.attrs["NX_class"] = "NXdata"
        counts = data.create_dataset("counts", (0,), "<i8", maxshape=(None,), chunks=(64,))
        f.swmr_mode = True
        for i in range(100):
            counts.resize((i + 1,))
            counts[i] = i * i
            counts.flush()
            time.sleep(0.1)


def learning():
    """Writes the weights of two epochs in the layout of Keras 3, and a labelled set of eight images.
    The pixels of image i are 10 i, and its label is i % 3."""
    for epoch in (1, 2):
        with h5py.File(f"epoch{epoch}.weights.h5", "w") as f:
            f["layers/dense/vars/0"] = np.eye(4, 3, dtype="f4")
            f["layers/dense/vars/1"] = np.full(3, 0.25 * epoch, "f4")
            f["layers/dense_1/vars/0"] = np.ones((3, 2), "f4")
            f["optimizer/vars/0"] = np.array(100 * epoch, "i8")
    with h5py.File("train.h5", "w") as f:
        images = np.arange(8)[:, None, None, None] * np.full((6, 6, 3), 10)
        f.create_dataset("images", data=images.astype("u1"), chunks=(1, 6, 6, 3), compression="gzip")
        f["labels"] = np.arange(8) % 3
        f["labels"].attrs["classes"] = ["cat", "dog", "owl"]


TRADES = (
    climate, ocean, satellite, neutrons, neuroscience, cells,
    astronomy, matlab, finance, simulations, instrument, learning,
)  # fmt: skip


def main(trade, directory="."):
    os.makedirs(directory, exist_ok=True)
    os.chdir(directory)
    {function.__name__: function for function in TRADES}[trade]()


if __name__ == "__main__":
    main(*sys.argv[1:])
