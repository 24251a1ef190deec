"""An ASDF file of scalars, mappings and arrays. Its JSON must equal what asdf reads."""

import json
import os

import asdf
import numpy as np
from documents import failure, strict, whole
from kit import fixture
from tools import said

TREE = {
    "number": 42,
    "real": 0.1,
    "text": 'a "quoted"\nline, ü',
    "nothing": None,
    "truth": True,
    "list": [1, None, True, "x", [2.5, {"deep": ""}]],
    "mapping": {"b": 1, "a": {"c": [], "d": {}}},
}


@fixture("tree.asdf")
def write(path):
    masked = np.ma.array([1.5, 2.5, 3.5], mask=[0, 1, 0])
    arrays = {"plane": np.arange(6, dtype="<i2").reshape(2, 3), "masked": masked}
    asdf.AsdfFile({**TREE, **arrays, "holder": {"array": np.zeros(3), "name": "x"}}).write_to(path)


@write.others
def others(path, views):
    with asdf.open(path) as f:
        wanted = {name: f[name] for name in TREE}
        wanted["plane"] = f["plane"].tolist()
        wanted["masked"] = f["masked"].tolist()
    for name, value in wanted.items():
        file = os.path.join(views, "json", name + ".json")
        yield "json", "Python json", failure(equal, lambda: strict(whole(file)), value)
        yield "json", "jq", failure(equal, lambda: json.loads(said("jq", ".", file)), value)
    holder = os.path.join(views, "json/holder.json")
    yield "json", "jq", failure(equal, lambda: json.loads(said("jq", ".array.shape", holder)), [3])


def equal(read, wanted):
    got = read()
    assert got == wanted and repr(got) == repr(wanted), (got, wanted)
