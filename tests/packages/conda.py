#!/usr/bin/env python3
"""conda.py RECIPE: fills in the placeholders of the recipe, and checks that rattler-build can plan
its package. Needs py-rattler-build."""

import sys

from rattler_build import Stage0Recipe, VariantConfig

BLANKS = {
    "URL-OF-THE-RELEASE": "https://localhost/h5fs.tar.gz",
    "SHA256-OF-THE-RELEASE": "0" * 64,
}
# The values of conda-forge.
STANDARD_LIBRARY = {"c_stdlib": ["sysroot"], "c_stdlib_version": ["2.17"]}

with open(sys.argv[1]) as file:
    text = file.read()
for blank, value in BLANKS.items():
    assert f": {blank}\n" in text, blank
    text = text.replace(f": {blank}\n", f": {value}\n")
plans = Stage0Recipe.from_yaml(text).render(VariantConfig(STANDARD_LIBRARY))
assert plans, "no package for this machine"
