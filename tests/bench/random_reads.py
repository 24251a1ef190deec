"""Random reads by fio, at given or random offsets."""

import json
import subprocess
import tempfile

BASE = ["fio", "--thread", "--readonly", "--ioengine=psync", "--output-format=json"]


def run(*arguments):
    """Returns the seconds from the first read to the last."""
    said = subprocess.run(
        [*BASE, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True
    ).stdout
    return max(job["read"]["runtime"] for job in json.loads(said)["jobs"]) / 1000


def replay(path, places, readers):
    """Reads 4 KiB at each of the offsets, which are divided among this number of readers."""
    with tempfile.TemporaryDirectory(prefix="h5fs-bench-") as directory:
        jobs = []
        for reader in range(readers):
            log = f"{directory}/{reader}"
            with open(log, "w") as f:
                f.write(f"fio version 2 iolog\n{path} add\n{path} open\n")
                f.writelines(f"{path} read {at} 4096\n" for at in places[reader::readers])
                f.write(f"{path} close\n")
            jobs += [f"--name=reader{reader}", f"--read_iolog={log}"]
        return run(*jobs)


def storm(path, readers, reads):
    """Runs this number of readers at once, each with this number of reads of 4 KiB."""
    return run(
        "--name=storm",
        f"--filename={path}",
        "--rw=randread",
        "--bs=4k",
        f"--numjobs={readers}",
        f"--number_ios={reads}",
    )
