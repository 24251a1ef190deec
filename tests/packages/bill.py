#!/usr/bin/env python3
"""bill.py FILE: checks that the bill of materials is valid for the CycloneDX schema, and that its
components have unique names. Needs cyclonedx-python-lib."""

import json
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

with open(sys.argv[1]) as file:
    text = file.read()
fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
assert fault is None, fault
names = [component["purl"] for component in json.loads(text)["components"]]
assert len(names) == len(set(names)) > 50, len(names)
print(f"{len(names)} components, in the form of CycloneDX")
