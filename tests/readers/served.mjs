// Reads the file of served.py with zarrita and hyparquet. Node runs this script from standard input;
// the arguments are the server's URL and the value of the `Authorization` header.

import * as zarr from "zarrita";
import { asyncBufferFromUrl, parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";

const [url, Authorization] = process.argv.slice(2);
const headers = { Authorization };
const store = new zarr.FetchStore(`${url}.h5fs/file.zarr`, { overrides: { headers } });
const array = async (path) => zarr.get(await zarr.open(zarr.root(store).resolve(path), { kind: "array" }));
const grid = await array("run/temperature");
const sparse = await array("sparse");
const address = `${url}.h5fs/parquet/table.parquet`;
const file = await asyncBufferFromUrl({ url: address, requestInit: { headers } });
const rows = await parquetReadObjects({ file, compressors, rowStart: 123456, rowEnd: 123460 });
console.log(JSON.stringify({
  shape: grid.shape,
  grid: Array.from(grid.data),
  sparse: sparse.data.reduce((sum, value) => sum + value, 0),
  rows: rows.map(({ number, value }) => [Number(number), value]),
}));
