#!/usr/bin/env python3
"""example.py FILE: writes the small climate-like HDF5 file that `h5fs example` writes and the
documents show. The program contains it as src/cli/text/climate.h5; a test compares the two.

example.py DIRECTORY/: writes the twelve monthly files of a year, src/cli/text/months."""

import calendar
import os
import sys

import h5py
import numpy as np

DAYS, LATITUDES, LONGITUDES = 365, 36, 72


def main(path):
    day = np.arange(DAYS, dtype="<i4")
    latitude = np.linspace(-87.5, 87.5, LATITUDES, dtype="<f4")
    longitude = np.linspace(-177.5, 177.5, LONGITUDES, dtype="<f4")
    season = np.cos(2 * np.pi * (day - 196) / DAYS)
    warmth = 300 - 45 * np.sin(np.radians(np.abs(latitude))) ** 2
    swing = 15 * np.sin(np.radians(latitude))
    ripple = np.sin(np.radians(3 * longitude))
    temperature = (
        warmth[None, :, None] + season[:, None, None] * swing[None, :, None] + ripple[None, None, :]
    )
    # rounded to the resolution of a thermometer, so that the file is small
    temperature = np.round(temperature * 16) / 16

    with h5py.File(path, "w", libver=("v110", "v110")) as f:
        f.attrs["title"] = "An example: daily means on a grid of 5 degrees"
        f.attrs["Conventions"] = "CF-1.10"
        for name, values, units in (
            ("day", day, "days since 2025-01-01"),
            ("latitude", latitude, "degrees_north"),
            ("longitude", longitude, "degrees_east"),
        ):
            f[name] = values
            f[name].attrs["units"] = units
            f[name].make_scale(name)
        made = f.create_dataset(
            "surface/temperature",
            data=temperature.astype("<f4"),
            chunks=(30, 36, 72),
            compression="gzip",
            compression_opts=9,
            shuffle=True,
        )
        for axis, name in enumerate(("day", "latitude", "longitude")):
            made.dims[axis].attach_scale(f[name])
        made.attrs["units"] = "K"
        made.attrs["long_name"] = "air temperature at 2 m"
        made.attrs["valid_range"] = np.array([180, 340], "<f4")
        land = f.create_dataset(
            "surface/land", (LATITUDES, LONGITUDES), "u1", chunks=(12, 24), compression="gzip"
        )
        land[20:30, 10:40] = 1
        f["stations/name"] = np.array(["Sodankylä", "Jokioinen", "Utö"], dtype=h5py.string_dtype())
        f["stations/position"] = np.array(
            [(67.37, 26.63), (60.81, 23.5), (59.78, 21.37)], [("lat", "<f4"), ("lon", "<f4")]
        )
        weather = 3 * np.sin(day / 2.3) * np.sin(day / 17) + 2 * np.sin(day / 5.1)
        f["surface/north"] = (temperature[:, latitude > 60].mean(axis=(1, 2)) + weather).astype("<f4")
        f["surface/north"].attrs["units"] = "K"
        f["surface/north"].dims[0].attach_scale(f["day"])
        f["latest"] = h5py.SoftLink("/surface/temperature")


def months(directory):
    """Writes a file for each month, as models and archives write them: with its own reference time,
    bounds of the days, and daily means on a grid of 15 degrees."""
    os.makedirs(directory, exist_ok=True)
    latitude = np.linspace(-82.5, 82.5, 12, dtype="<f4")
    longitude = np.linspace(7.5, 352.5, 24, dtype="<f4")
    first = 0
    for month in range(1, 13):
        days = calendar.monthrange(2025, month)[1]
        day = first + np.arange(days)
        season = np.cos(2 * np.pi * (day - 196) / DAYS)
        warmth = 300 - 45 * np.sin(np.radians(np.abs(latitude))) ** 2
        swing = 15 * np.sin(np.radians(latitude))
        wave = np.sin(np.radians(3 * longitude))
        values = warmth[None, :, None] + season[:, None, None] * swing[None, :, None] + wave
        with h5py.File(os.path.join(directory, f"2025-{month:02}.nc"), "w", libver="v110") as f:
            f.attrs["title"] = "An example: daily means, a file a month"
            f.attrs["history"] = f"made for month {month}"
            for name, axis, units in (
                ("time", np.arange(days, dtype="<i4"), f"days since 2025-{month:02}-01"),
                ("latitude", latitude, "degrees_north"),
                ("longitude", longitude, "degrees_east"),
            ):
                f[name] = axis
                f[name].attrs["units"] = units
                f[name].make_scale(name)
            made = f.create_dataset(
                "temperature",
                data=(np.round(values * 4) / 4).astype("<f4"),
                chunks=(days, 12, 24),
                compression="gzip",
                compression_opts=9,
                shuffle=True,
            )
            for axis, name in enumerate(("time", "latitude", "longitude")):
                made.dims[axis].attach_scale(f[name])
            made.attrs["units"] = "K"
        first += days


if __name__ == "__main__":
    if sys.argv[1].endswith("/"):
        months(sys.argv[1])
    else:
        main(sys.argv[1])
