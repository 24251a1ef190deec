// Reads the file of served.py with zarrita and hyparquet, and its computed HDF5 file with jsfive and
// h5wasm. Node runs this script from standard input; the arguments are the server's URL, the value of
// the `Authorization` header, and a directory for a file.

import { writeFileSync } from "node:fs";
import h5wasm from "h5wasm/node";
import * as jsfive from "jsfive";
import * as zarr from "zarrita";
import { asyncBufferFromUrl, parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";

const [url, Authorization, directory] = process.argv.slice(2);
const headers = { Authorization };
const store = new zarr.FetchStore(`${url}.h5fs/file.zarr`, { overrides: { headers } });
const array = async (path) => zarr.get(await zarr.open(zarr.root(store).resolve(path), { kind: "array" }));
const grid = await array("run/temperature");
const sparse = await array("sparse");
const address = `${url}.h5fs/parquet/table.parquet`;
const file = await asyncBufferFromUrl({ url: address, requestInit: { headers } });
const rows = await parquetReadObjects({ file, compressors, rowStart: 123456, rowEnd: 123460 });
const computed = await (await fetch(`${url}.h5fs/file.h5`, { headers })).arrayBuffer();
const inScript = new jsfive.File(computed, "file.h5");
writeFileSync(`${directory}/file.h5`, new Uint8Array(computed));
await h5wasm.ready;
const compiled = new h5wasm.File(`${directory}/file.h5`, "r");
console.log(JSON.stringify({
  shape: grid.shape,
  grid: Array.from(grid.data),
  sparse: sparse.data.reduce((sum, value) => sum + value, 0),
  jsfive: inScript.get("run/temperature").value,
  h5wasm: Array.from(compiled.get("run/temperature").value),
  rows: rows.map(({ number, value }) => [Number(number), value]),
}));
