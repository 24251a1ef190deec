"""The behaviour of each tool with any CSV file."""

import re
from dataclasses import replace

import numpy as np
from table import Column, Rule


def has(test):
    """Applies to columns with a value for which `test` is true."""
    return lambda c: any(test(value) for value in c.values)


def values(function):
    return lambda c: replace(c, values=[function(value) for value in c.values])


def is_nan(value):
    return isinstance(value, float) and value != value


def is_unbounded(value):
    return isinstance(value, float) and value - value != 0


def begins_unbounded(c):
    return is_unbounded(c.values[0]) and not is_nan(c.values[0])


def is_missing(value):
    return value is None


def is_empty(value):
    return isinstance(value, str) and value == ""


def of_kind(*kinds):
    return lambda c: c.kind in kinds


def both(one, other):
    return lambda c: one(c) and other(c)


LISTS = Rule("", of_kind("list"), Column.as_text)
ALL_TEXT = Rule("reads every field as text", lambda c: c.kind != "text", Column.as_text)
TIMES_ARE_TEXT = Rule("reads times as text", of_kind("time"), Column.as_text)
BOOLEANS_ARE_TEXT = Rule("reads `true` and `false` as text", of_kind("boolean"), Column.as_text)
MISSING_IS_EMPTY = Rule(
    "reads a missing value as an empty text",
    has(is_missing),
    lambda c: replace(values(lambda v: "" if v is None else v)(c), meaning=c.stands_for()),
)
EMPTY_IS_MISSING = Rule(
    "reads an empty text as a missing value",
    both(of_kind("text"), has(is_empty)),
    values(lambda v: None if v == "" else v),
)
NAN_IS_MISSING = Rule(
    "does not distinguish NaN from missing", has(is_nan), values(lambda v: None if is_nan(v) else v)
)


def line_ends(note, function):
    """Returns a rule for carriage returns within a text."""
    return Rule(
        note,
        both(of_kind("text"), has(lambda v: isinstance(v, str) and function(v) != v)),
        values(lambda v: function(v) if isinstance(v, str) else v),
    )


def both_to_line_feed(text):
    return text.replace("\r\n", "\n")


def all_to_line_feed(text):
    return both_to_line_feed(text).replace("\r", "\n")


def doubles(digits, tolerance):
    return Rule(
        f"reads numbers with {digits} digits",
        of_kind("integer", "real"),
        lambda c: replace(c, kind="real", tolerance=tolerance),
    )


NUMBERS_OR_TEXT = Rule(
    "reads NaN and infinities as text",
    both(of_kind("real"), has(is_unbounded)),
    lambda c: replace(
        c, kind="text" if all(map(is_unbounded, c.values)) else "mixed", meaning="real"
    ),
)


# ---------------------------------------------------------------- rules by tool

PANDAS = (
    LISTS,
    TIMES_ARE_TEXT,
    EMPTY_IS_MISSING,
    NAN_IS_MISSING,
    Rule(
        "reads integers with missing values as reals",
        both(of_kind("integer"), has(is_missing)),
        lambda c: replace(c, kind="real"),
    ),
    Rule(
        "reads about 13 digits of a number (`float_precision='round_trip'` reads all)",
        both(of_kind("real"), lambda c: c.precision == np.float64),
        lambda c: replace(c, tolerance=1e-12),
    ),
)
ZEROS_ARE_TEXT = Rule(
    "reads integers with leading zeros as text (only in tables too large to count)",
    both(of_kind("integer"), lambda c: c.padded),
    Column.as_text,
)
DUCKDB = (
    LISTS,
    ZEROS_ARE_TEXT,
    EMPTY_IS_MISSING,
    Rule(
        "reads a column that begins with an infinity as text",
        both(of_kind("real"), begins_unbounded),
        Column.as_text,
    ),
)
MILLER = (
    LISTS,
    ZEROS_ARE_TEXT,
    TIMES_ARE_TEXT,
    BOOLEANS_ARE_TEXT,
    NUMBERS_OR_TEXT,
    Rule(
        "reads the integer 2^64 - 1 as text",
        both(of_kind("integer"), has(lambda v: v is not None and v >= 2**64 - 1)),
        lambda c: replace(c, kind="mixed", meaning="integer"),
    ),
    Rule(
        "turns names with a dot into nested objects",
        lambda c: "." in (c.name or ""),
        lambda c: c,
    ),
    MISSING_IS_EMPTY,
    line_ends("turns CR LF in a text into LF", both_to_line_feed),
)
ALL_LINE_ENDS = line_ends("turns a carriage return in a text into a line feed", all_to_line_feed)
CSVKIT = (LISTS, EMPTY_IS_MISSING, doubles(16, 1e-15), ALL_LINE_ENDS)
OFFICE = (
    LISTS,
    EMPTY_IS_MISSING,
    doubles(15, 1e-14),
    NUMBERS_OR_TEXT,
    Rule(
        "evaluates a text that begins with `=`",
        both(of_kind("text"), has(lambda v: v == "=1+1")),
        lambda c: replace(
            values(lambda v: 2.0 if v == "=1+1" else v)(c), kind="mixed", meaning="text"
        ),
    ),
    ALL_LINE_ENDS,
)


def r_name(name):
    """Applies R's make.names: replaces characters that are invalid in a name by a dot."""
    name = re.sub(r"[^\w.]", ".", name)
    return name if re.match(r"[^\W\d_]|\.(?!\d)", name) else "X" + name


R = (
    LISTS,
    TIMES_ARE_TEXT,
    BOOLEANS_ARE_TEXT,
    Rule(
        "replaces characters of names by dots (not with `check.names=FALSE`)",
        lambda c: c.name is not None and r_name(c.name) != c.name,
        lambda c: replace(c, name=r_name(c.name)),
    ),
    Rule(
        "reads integers beyond 32 bits as reals",
        both(of_kind("integer"), has(lambda v: v is not None and abs(v) >= 2**31)),
        lambda c: replace(c, kind="real", tolerance=1e-15),
    ),
    Rule(
        "rounds the last digit of a number",
        both(of_kind("real"), lambda c: c.precision == np.float64),
        lambda c: replace(c, tolerance=1e-15),
    ),
    line_ends("turns a carriage return in a text into a line feed", all_to_line_feed),
    Rule(
        "reads a missing text as an empty text",
        both(of_kind("text", "time"), has(is_missing)),
        lambda c: replace(values(lambda v: "" if v is None else v)(c), meaning=c.stands_for()),
    ),
)
