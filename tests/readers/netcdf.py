"""netCDF variables with every kind of packing and every calendar, compared with xarray and cftime.
"""

import csv
import os
from fractions import Fraction

import cftime
import netCDF4
import numpy as np
import pandas
import xarray
from documents import failure
from kit import fixture

CALENDARS = ["standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day"]
UNITS = ["days", "hours", "mins", "seconds", "msec", "microseconds"]
REFERENCES = [
    "1850-01-01",
    "1-1-1 00:00:0.0",
    "1582-10-04T12:30",
    "2000-02-29 23:59:59.999999",
    "1970-01-01 00:00:00 +05:30",
    "1900-1-1 0:0 -0600",
]
TIMES = 200
PACKINGS = {
    "fill": ("i2", {"_FillValue": -1}),
    "fill4": ("i4", {"_FillValue": -1}),
    "missing": ("f8", {"missing_value": np.array([1.0, 2.0])}),
    "both": ("i2", {"scale_factor": np.float32(0.01), "add_offset": np.float32(273.15)}),
    "both4": ("i4", {"scale_factor": np.float32(0.1), "add_offset": np.float32(1)}),
    "scale": ("i2", {"scale_factor": np.float32(5.1)}),
    "offset": ("i2", {"add_offset": np.float32(5), "_FillValue": -1}),
    "mixed": ("i1", {"scale_factor": np.float32(0.1), "add_offset": 0.5}),
    "unsigned": ("i1", {"_Unsigned": "true", "_FillValue": -1}),
    "signed": ("u1", {"_Unsigned": "false"}),
    "big": (">i4", {"scale_factor": 0.5}),
    "plain": ("i8", {}),
}


def time_variables():
    """Yields names, units and calendars, for the reference times that exist in a calendar."""
    for calendar in CALENDARS:
        for unit in UNITS:
            for number, reference in enumerate(REFERENCES):
                units = f"{unit} since {reference}"
                try:
                    cftime.num2date(0, units, calendar)
                except ValueError:
                    continue
                yield f"{calendar}_{unit}_{number}", units, calendar


def numbers_of(unit, chance):
    """Returns whole numbers, and fractional numbers whose microseconds cftime's long doubles
    represent exactly."""
    span = 10**6 * 86400 // {"days": 86400, "hours": 3600, "mins": 60}.get(unit, 1)
    whole = chance.integers(-span, span, TIMES // 2)
    return np.concatenate([whole, np.floor(whole / 24 * 1024 + 1) / 1024])


@fixture("calendars.nc")
def write_times(path):
    chance = np.random.default_rng(7)
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("n", TIMES)
        for name, units, calendar in time_variables():
            variable = file.createVariable(name, "f8", ("n",))
            variable.setncatts({"units": units, "calendar": calendar})
            variable[:] = numbers_of(units.split()[0], chance)


def column(path, name):
    with open(path, newline="") as file:
        return [row[name] for row in csv.DictReader(file)]


@write_times.others
def times(path, views):
    with netCDF4.Dataset(path) as file:
        for name, units, calendar in time_variables():
            numbers = file[name][:].ravel()
            wanted = cftime.num2date(numbers, units, calendar)
            wanted = [time.isoformat() for time in wanted]
            if calendar in CALENDARS[:2]:
                exact = map(exact_text, numbers, [units] * len(numbers), wanted)
                wanted = [text or time for text, time in zip(exact, wanted)]
            csv_path = os.path.join(views, "cf", name + ".csv")
            yield f"cf {calendar} (.csv)", "cftime", failure(same_times, csv_path, name, wanted)


UNIT_NANOSECONDS = dict(
    days=86_400 * 10**9, hours=3_600 * 10**9, mins=60 * 10**9, seconds=10**9, msec=10**6, microseconds=1000
)


def exact_text(number, units, rounded):
    """Returns the time of a number that is exact to the nanosecond, in NumPy's format. cftime has
    rounded it to the microsecond. Returns None for any other number."""
    each = UNIT_NANOSECONDS[units.split()[0]]
    near = np.datetime64(rounded.removesuffix("Z"), "us") if rounded[0] != "-" else None
    is_near = near is not None and abs(near.astype(int)) < 9 * 10**15
    if not is_near or np.spacing(abs(number)) * each > 1:
        return None
    # The two times differ by less than a microsecond, unless cftime has rounded to a whole second.
    nanoseconds = round(Fraction(number) * each)
    start = cftime.num2date(0, units, "standard")
    start = np.datetime64(start.isoformat(), "ns")
    text = str(start + np.timedelta64(nanoseconds, "ns"))
    return text.removesuffix(".000000000") if text.endswith("0" * 9) else text.removesuffix("000")


def same_times(path, name, wanted):
    for read, time in zip(column(path, name), wanted, strict=True):
        assert read == time, f"{name}: {read}, not {time}"


@fixture("packings.nc")
def write_packings(path):
    chance = np.random.default_rng(8)
    with netCDF4.Dataset(path, "w") as file:
        for name, size in (("time", 4), ("y", 3), ("x", 2)):
            file.createDimension(name, size)
        file.createVariable("y", "f4", ("y",))[:] = [1, 2.5, 3]
        time = file.createVariable("time", "i4", ("time",))
        time.units = "hours since 2000-01-01"
        time[:] = [0, 6, 12, 1000]
        file.createVariable("area", "f8", ("y", "x"))[:] = chance.random((3, 2))
        for name, (kind, attributes) in PACKINGS.items():
            attributes = dict(attributes)
            fill = attributes.pop("_FillValue", None)
            made = file.createVariable(name, kind, ("time", "y", "x"), fill_value=fill)
            made.setncatts({**attributes, "coordinates": "area"})
            made.set_auto_maskandscale(False)
            made[:] = chance.integers(-3 if kind[-2] == "i" else 0, 9, (4, 3, 2))


@write_packings.others
def packings(path, views):
    with xarray.open_dataset(path) as read:
        for name in PACKINGS:
            cf = os.path.join(views, "cf", name)
            yield "cf (.npy)", "xarray", failure(same_array, cf + ".npy", read[name].values)
            frame = read[name].to_dataframe().reset_index()
            yield "cf (.csv)", "xarray", failure(same_frame, cf + ".csv", frame)
            part = read[name].isel(time=-1, x=slice(None, None, -1))
            frame = part.to_dataframe().reset_index()
            yield "cf (.csv)", "xarray", failure(same_frame, cf + "[-1,:,::-1].csv", frame)


def same_array(path, wanted):
    found = np.load(path)
    assert found.dtype.newbyteorder("=") == wanted.dtype, found.dtype
    np.testing.assert_array_equal(found, wanted)


def same_frame(path, wanted):
    # The file does not define the order of coordinates that are not dimensions.
    found = pandas.read_csv(path, parse_dates=["time"], float_precision="round_trip")
    assert sorted(found.columns) == sorted(wanted.columns), list(found.columns)
    assert found.columns[-1] == wanted.columns[-1]
    found = found[wanted.columns].astype(wanted.dtypes)
    pandas.testing.assert_frame_equal(found, wanted, check_exact=True)
