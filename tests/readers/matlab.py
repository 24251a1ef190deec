"""A file with the layout of MATLAB 7.3: reversed axes, characters as UTF-16, cells as references.
"""

import os

import h5py
import numpy as np
from documents import equal, failure, whole
from kit import fixture

WORDS = ["plain", "Grüße", 'a,b"c', "☃ 漢字"]


def chars(rows):
    """Returns MATLAB's matrix of characters as stored: one axis for the letters, one for the rows.
    """
    longest = max(map(len, rows))
    units = [np.frombuffer(row.ljust(longest).encode("utf-16-le"), "<u2") for row in rows]
    return np.array(units).T


@fixture("cells.mat")
def write(path):
    with h5py.File(path, "w", userblock_size=512) as f:
        hidden = f.create_group("#refs#")
        for name, rows in (("word", WORDS[:1]), ("two words", WORDS[1:3])):
            f[name] = chars(rows)
            f[name].attrs["MATLAB_class"] = np.bytes_("char")
        for number, word in enumerate(WORDS):
            made = hidden.create_dataset(f"c{number}", data=chars([word]))
            made.attrs["MATLAB_class"] = np.bytes_("char")
        cells = [[hidden[f"c{column * 2 + row}"].ref for row in range(2)] for column in range(2)]
        f.create_dataset("cells", data=np.array(cells, h5py.ref_dtype), dtype=h5py.ref_dtype)
        f["cells"].attrs["MATLAB_class"] = np.bytes_("cell")


@write.others
def others(path, views):
    def text(name):
        return lambda: whole(os.path.join(views, "text", name + ".txt"))

    yield "text", "Python", failure(equal, text("word"), WORDS[0] + "\n")
    both = "".join(word.ljust(5) + "\n" for word in WORDS[1:3])
    yield "text", "Python", failure(equal, text("two words"), both)
    with h5py.File(path) as f:
        for (i, j), reference in np.ndenumerate(f["cells"][()]):
            link = os.path.join(views, "refs/cells", f"{i},{j}")
            target = os.path.join(os.path.dirname(views), f[reference].name.lstrip("/"))
            yield "refs", "readlink", failure(equal, lambda: os.path.realpath(link), target)
